package agentsandbox

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	// WarmPoolLabel is on every Sandbox that was made for a pool, until it is
	// bound, with a hash of the pool's name.
	WarmPoolLabel = warmPoolLabel
	// PodSandboxLabel is on the Pod of every Sandbox, with a hash of its name.
	PodSandboxLabel = sandboxNameHashLabel
	// BarePodVersion is the only one that releases serve whose members are Pods.
	BarePodVersion = "v1alpha1"
)

// Inspect prepares for a pool and the template that it refers to, as stored;
// nil when that template does not exist.
func (p *Platform) Inspect(ctx context.Context, pool, template *unstructured.Unstructured) (*platform.Inspection, error) {
	return p.inspect(ctx, pool, template, p.NamespaceLabels)
}

// CachedInspector inspects as Platform does, but for labels of namespaces, which it
// takes from a cache: a prediction is not worth a read.
type CachedInspector struct {
	*Platform
	Cached platform.NamespaceLabels
}

// Inspect is that of Platform.
func (f CachedInspector) Inspect(ctx context.Context, pool, template *unstructured.Unstructured) (*platform.Inspection, error) {
	return f.inspect(ctx, pool, template, f.Cached)
}

// CachedBarePods is BarePods for controllers that inspect with what caches show.
type CachedBarePods struct {
	BarePods
	CachedInspector
}

// InspectBarePod is that of Platform.
func (f CachedInspector) InspectBarePod(ctx context.Context, pool, template, pod *unstructured.Unstructured) (freshness.Verdict, error) {
	return f.inspectBarePod(ctx, pool, template, pod, f.Cached)
}

func (p *Platform) inspect(ctx context.Context, pool, template *unstructured.Unstructured, labels platform.NamespaceLabels) (*platform.Inspection, error) {
	least, err := p.leastStrategy(func() (map[string]string, error) { return labels(ctx, pool.GetNamespace()) })
	if err != nil {
		return nil, err
	}
	f := platform.Facts{Snapshot: freshness.Snapshot{
		Operation: freshness.Stored, Pool: p.poolOf(pool, least), Injected: p.paths.injected(pool),
	}}
	if template != nil {
		if err := p.renderInto(ctx, &f, stored{pool: pool, template: template}); err != nil {
			return nil, err
		}
	}
	return platform.NewInspection(p, f.Snapshot, pool.GetAnnotations()[settings.InjectedPathsKey]), nil
}

// TemplateOf returns the name of the template that a pool refers to.
func TemplateOf(pool *unstructured.Unstructured) string {
	return str(pool.Object, "spec", "sandboxTemplateRef", "name")
}

// ReadySince is when a Sandbox became ready; zero when it is not.
func ReadySince(sandbox *unstructured.Unstructured) time.Time {
	status, _ := sandbox.Object["status"].(map[string]any)
	for _, c := range objects(status, "conditions") {
		if str(c, "type") != "Ready" || str(c, "status") != "True" {
			continue
		}
		at, err := time.Parse(time.RFC3339, str(c, "lastTransitionTime"))
		if err != nil {
			return sandbox.GetCreationTimestamp().Time
		}
		return at
	}
	return time.Time{}
}

// Shown reports whether the claim controller does not pass the member over.
func Shown(sandbox metav1.Object) bool {
	return sandbox.GetLabels()[TemplateRefHashLabel] != ""
}

// Recreates reports whether the platform itself replaces the pool's stale
// members; it then takes hidden ones for stale.
func Recreates(pool *unstructured.Unstructured) bool {
	return strategyIn(pool) == string(freshness.Recreate)
}

// Replicas is how many members the pool is to have; 1 where it does not say, as
// the CRD defaults it.
func Replicas(pool *unstructured.Unstructured) int {
	n, found, _ := unstructured.NestedInt64(pool.Object, "spec", "replicas")
	if !found {
		return 1
	}
	return int(n)
}

// NamesScheduler reports whether a Sandbox itself says who schedules its Pod.
func NamesScheduler(sandbox *unstructured.Unstructured) bool {
	return str(sandbox.Object, "spec", "podTemplate", "spec", "schedulerName") != ""
}

// IsPoolOwner reports whether an owner is a pool.
func IsPoolOwner(owner *metav1.OwnerReference) bool {
	return ownerKind(owner.APIVersion, owner.Kind) == freshness.OwnedByPool
}

// IsSandboxOwner reports whether an owner is a Sandbox.
func IsSandboxOwner(owner *metav1.OwnerReference) bool {
	return IsSandbox(groupKind(owner.APIVersion, owner.Kind))
}

// PodSandbox returns the name of the Sandbox that controls a Pod; "" when none
// does.
func PodSandbox(pod metav1.Object) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && IsSandboxOwner(owner) {
		return owner.Name
	}
	return ""
}
