package agentsandbox

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/fields"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// They are read all over this package.
var str, objects = fields.String, fields.Objects

// IsSandbox reports whether kind is the platform's Sandbox, of any version.
func IsSandbox(gk schema.GroupKind) bool {
	return gk.Group == CoreGroup && gk.Kind == kindSandbox
}

// ContentOf returns what a Sandbox is built from.
func ContentOf(sandbox *unstructured.Unstructured) (revision.Blueprint, error) {
	spec, err := fields.Object(sandbox.Object, "spec")
	if err != nil {
		return revision.Blueprint{}, fmt.Errorf("reading spec of sandbox %s: %w", sandbox.GetName(), err)
	}
	b, err := revision.FromSpec(spec)
	if err != nil {
		return revision.Blueprint{}, fmt.Errorf("reading blueprint of sandbox %s: %w", sandbox.GetName(), err)
	}
	return b, nil
}

func memberOf(w platform.Write) (freshness.Member, error) {
	obj := w.Judged()
	content, err := ContentOf(obj)
	if err != nil {
		return freshness.Member{}, err
	}
	m := freshness.Member{
		Name:       obj.GetName(),
		UID:        string(obj.GetUID()),
		Controller: controllerOf(obj),
		Deleting:   obj.GetDeletionTimestamp() != nil,
		Used:       wasClaimed(obj) && (w.Operation != freshness.ColdStart || claimedByUpstream(obj)),
		NamedFirst: obj.GetLabels()[podTemplateHashLabel] != "",
		Generation: obj.GetGeneration(),
		Template:   obj.GetAnnotations()[templateRefAnnotation],
		Content:    content,
		Proposed:   content,
		PodName:    PodNameOf(obj),
		PodIPs:     nestedStrings(obj.Object, "status", "podIPs"),
		Created:    obj.GetCreationTimestamp().Time,
		ByHand:     obj.GetAnnotations()[settings.CreatedByKey] != settings.CreatedByPool,
	}
	if w.Operation == freshness.Bind {
		m.ProposedPodName = PodNameOf(w.New)
		if m.Proposed, err = ContentOf(w.New); err != nil {
			return freshness.Member{}, err
		}
	}
	return m, nil
}

// PodNameOf returns the name of the Pod that a Sandbox runs in, by what it says.
func PodNameOf(sandbox metav1.Object) string {
	if name := sandbox.GetAnnotations()[podNameAnnotation]; name != "" {
		return name
	}
	return sandbox.GetName()
}

// wasClaimed reads the marks that a claim leaves on its Sandbox: upstream's and our own.
func wasClaimed(sandbox *unstructured.Unstructured) bool {
	return claimedByUpstream(sandbox) || sandbox.GetAnnotations()[settings.BoundToKey] != ""
}

// claimedByUpstream reads the label that upstream sets (on the pod template only in
// v0.3.10).
func claimedByUpstream(sandbox *unstructured.Unstructured) bool {
	podLabels, _, _ := unstructured.NestedStringMap(sandbox.Object, "spec", "podTemplate", "metadata", "labels")
	return sandbox.GetLabels()[claimUIDLabel] != "" || podLabels[claimUIDLabel] != ""
}

func nestedStrings(obj map[string]any, path ...string) []string {
	s, _, _ := unstructured.NestedStringSlice(obj, path...)
	return s
}

// claimOf reads both shapes of a claim: v1beta1 names its pool, v1alpha1 its
// template and, since v0.3.10, "none", "default" (any pool of that template)
// or a pool.
func claimOf(obj *unstructured.Unstructured) *freshness.Claim {
	c := &freshness.Claim{
		UID:      string(obj.GetUID()),
		Deleting: obj.GetDeletionTimestamp() != nil,
		Pool:     str(obj.Object, "spec", "warmPoolRef", "name"),
		Names:    namesOn(obj),
	}
	if template := str(obj.Object, "spec", "sandboxTemplateRef", "name"); template != "" {
		c.Template = template
		switch pool := str(obj.Object, "spec", "warmpool"); pool {
		case "none":
		case "", "default":
			c.AnyPool = true
		default:
			c.Pool = pool
		}
	}
	return c
}

func namesOn(claim *unstructured.Unstructured) []string {
	var names []string
	for _, name := range []string{claim.GetAnnotations()[sandboxNameKey], claim.GetLabels()[sandboxNameKey]} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// poolOf reads a pool, whose strategy is not below the least strict one of its
// namespace.
func (p *Platform) poolOf(obj *unstructured.Unstructured, least freshness.Strategy) *freshness.Pool {
	annotations, spec := settings.Pool(obj.GetAnnotations()), strategyIn(obj)
	return &freshness.Pool{
		Name:        obj.GetName(),
		UID:         string(obj.GetUID()),
		Deleting:    obj.GetDeletionTimestamp() != nil,
		Template:    TemplateOf(obj),
		Strategy:    p.Defaults.StrategyOf(annotations[settings.StrategyKey], spec, least),
		Replenishes: replenishes(spec),
		AdmitAny:    annotations.AdmitsAny(),
		ByName:      annotations.ByName(),
		Restarted:   annotations.Restarted(time.Now()),
		Suspended:   annotations[settings.AttributionKey],
	}
}

// strategyIn is the strategy in a pool's spec; "" when it names none.
func strategyIn(pool *unstructured.Unstructured) string {
	return str(pool.Object, "spec", "updateStrategy", "type")
}

// replenishes reports whether the pool controller compares no member with its
// template, by the strategy in the pool's spec (v0.4.6 to v1.0.3,
// sandboxwarmpool_controller.go, filterActiveSandboxes; v0.3.10 knows no strategy,
// and compares nothing).
func replenishes(spec string) bool { return spec == "" || spec == string(freshness.OnReplenish) }

// leastStrategy returns the least strict one in a namespace, "" for any. It asks for
// the labels only where there are floors for strategies.
func (p *Platform) leastStrategy(labels func() (map[string]string, error)) (freshness.Strategy, error) {
	if !p.Defaults.Floors.HasStrategy() {
		return "", nil
	}
	namespace, err := labels()
	if err != nil {
		return "", fmt.Errorf("finding the least strict strategy of the namespace: %w", err)
	}
	return p.Defaults.Floors.Strategy(namespace), nil
}

func podOf(obj *unstructured.Unstructured) (*freshness.Pod, error) {
	p, err := platform.ReadPod(obj)
	if err != nil {
		return nil, err
	}
	p.ClaimUID = obj.GetLabels()[PodClaimLabel]
	return p, nil
}

// podInjections returns the paths at which a Pod may have more than its Sandbox says:
// beside those of any Pod, the volumes of the Sandbox's volumeClaimTemplates and the
// scheduler that members are sent to.
func (p *Platform) podInjections(sandbox, pod *unstructured.Unstructured, listed revision.PathSet) (revision.PathSet, error) {
	var paths []string
	spec, _ := sandbox.Object["spec"].(map[string]any)
	for _, claim := range objects(spec, "volumeClaimTemplates") {
		name := volumeClaimName(claim)
		volume := "podTemplate.spec.volumes[name=" + platform.Quoted(name) + "]."
		paths = append(paths, volume+"name", volume+"persistentVolumeClaim.claimName="+platform.Quoted(name+"-"+sandbox.GetName()))
	}
	if p.SchedulerName != "" {
		paths = append(paths, "podTemplate.spec.schedulerName="+p.SchedulerName)
	}
	return platform.PodInjections(pod, listed, paths...)
}
