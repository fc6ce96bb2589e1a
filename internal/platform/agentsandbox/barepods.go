package agentsandbox

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// Up to v0.2.1 a pool's members are bare Pods, and a claim takes one in two
// writes: the Pod loses the pool's label and owner, then a Sandbox is created
// that names it (extensions/controllers/sandboxclaim_controller.go,
// tryAdoptPodFromPool and createSandbox).
const (
	// PodPoolLabel is on a member that is a bare Pod, with a hash of the
	// pool's name. Later releases do not use it.
	PodPoolLabel = "agents.x-k8s.io/pool"
	// PodClaimLabel is on a bare Pod from the moment on that v0.2.1 takes it
	// for a claim, with the claim's UID. v0.1.0 names no claim.
	PodClaimLabel = claimUIDLabel

	sandboxNameHashLabel = "agents.x-k8s.io/sandbox-name-hash"
)

// IsPod reports whether obj is a Pod.
func IsPod(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "Pod" && obj.GetAPIVersion() == "v1"
}

// classifyPod recognises a bare Pod that a pool makes, one that leaves its pool
// (orphaning a pool's Pods keeps the label), and one without any owner that is
// taken from the claim which it was released to. Of the claim that a Pod leaves
// for, only the UID is known.
func classifyPod(op admissionv1.Operation, old, obj *unstructured.Unstructured) (platform.Write, bool) {
	if op == admissionv1.Create {
		return platform.Write{Operation: freshness.Birth, New: obj}, controllerOf(obj).Kind == freshness.OwnedByPool
	}
	if op != admissionv1.Update || old == nil {
		return platform.Write{}, false
	}
	before, after := old.GetLabels(), obj.GetLabels()
	_, pooled := before[PodPoolLabel]
	_, still := after[PodPoolLabel]
	leaves := pooled && !still && controllerOf(obj).Kind != freshness.OwnedByPool
	had, has := before[PodClaimLabel], after[PodClaimLabel]
	taken := platform.ControllerUID(old) == "" && had != "" && has != "" && had != has
	w := platform.Write{Operation: freshness.Release, Old: old, New: obj}
	if has != "" {
		w.Claim = freshness.Owner{Kind: freshness.OwnedByClaim, UID: has}
	}
	return w, leaves || taken
}

// namesBarePod reports whether a Sandbox, about to be created for a claim, is
// to run in a Pod that exists. Later releases never name one at CREATE.
func namesBarePod(sandbox *unstructured.Unstructured) bool {
	name := sandbox.GetAnnotations()[podNameAnnotation]
	return name != "" && name != sandbox.GetName()
}

// barePodSnapshot reads what the verdict on a member that is a bare Pod depends
// on.
func (p *Platform) barePodSnapshot(ctx context.Context, namespace platform.Namespace, w platform.Write) (platform.Facts, error) {
	pod := w.Judged()
	own, err := podOf(pod)
	if err != nil {
		return platform.Facts{}, err
	}
	f := platform.Facts{Namespace: namespace, Snapshot: freshness.Snapshot{Operation: w.Operation, Member: barePodMember(pod, own), Pod: own}}
	if w.Operation == freshness.Release {
		proposed, err := podOf(w.New)
		if err != nil {
			return platform.Facts{}, err
		}
		f.Member.Proposed = proposed.Content
	}
	objs, err := p.readForBarePod(ctx, pod, f.Member)
	if err != nil {
		return platform.Facts{}, err
	}
	if placement.NodeName(pod) != "" {
		own.NodeLeaving = placement.NodeState(objs.node).Leaving(placement.Tolerations(pod))
		f.Node = nodeOf(objs.node, pod)
	}
	done, err := p.Turns.Take(ctx, pod.GetNamespace())
	if err != nil {
		return platform.Facts{}, err
	}
	defer done()
	err = p.fillBarePod(ctx, &f, pod, objs)
	return f, err
}

// fillBarePod adds what pool and template say of a bare Pod.
func (p *Platform) fillBarePod(ctx context.Context, f *platform.Facts, pod *unstructured.Unstructured, objs stored) error {
	var err error
	if f.Injected, err = p.podInjections(pod, pod, p.paths.injected(objs.pool)); err != nil {
		return err
	}
	if objs.pool != nil {
		least, err := p.leastStrategy(f.Namespace.Labels)
		if err != nil {
			return err
		}
		f.Pool = p.poolOf(objs.pool, least)
		f.Enforcement = objs.pool.GetAnnotations()[settings.EnforcementKey]
		f.Member.Template = templateNamedBy(pod, f.Pool.Template)
	}
	if objs.template == nil {
		return nil
	}
	asMember, err := p.memo.Render(objs.template)
	if err != nil {
		return err
	}
	plain, err := p.renderPlain(ctx, objs.template)
	if err != nil {
		return err
	}
	f.Template = &freshness.Template{Name: objs.template.GetName(), Hash: asMember.Hash(), Content: plain.Content.PodOnly()}
	for _, k := range plain.Known {
		f.Known = append(f.Known, freshness.Known{Hash: k.Hash, Content: k.Content.PodOnly()})
	}
	return nil
}

// InspectBarePod says what a bare Pod is beside its pool and template, both as
// given: nothing is read. Its node is left aside.
func (p *Platform) InspectBarePod(ctx context.Context, pool, template, pod *unstructured.Unstructured) (freshness.Verdict, error) {
	return p.inspectBarePod(ctx, pool, template, pod, p.NamespaceLabels)
}

func (p *Platform) inspectBarePod(
	ctx context.Context, pool, template, pod *unstructured.Unstructured, labels platform.NamespaceLabels,
) (freshness.Verdict, error) {
	own, err := podOf(pod)
	if err != nil {
		return freshness.Verdict{}, err
	}
	f := platform.Facts{Snapshot: freshness.Snapshot{Operation: freshness.Idle, Member: barePodMember(pod, own), Pod: own}}
	if p.Defaults.Floors.HasStrategy() {
		f.Namespace = platform.StartNamespace(ctx, pod.GetNamespace(), labels)
	}
	if err := p.fillBarePod(ctx, &f, pod, stored{pool: pool, template: template}); err != nil {
		return freshness.Verdict{}, err
	}
	return freshness.JudgeWithin(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
}

// barePodRevision returns the revision that a bare Pod, about to be created by
// its pool, is built from.
func (p *Platform) barePodRevision(ctx context.Context, namespace platform.Namespace, pod *unstructured.Unstructured) (platform.Stamp, error) {
	f, err := p.barePodSnapshot(ctx, namespace, platform.Write{Operation: freshness.Birth, New: pod})
	if err != nil {
		return platform.Stamp{}, fmt.Errorf("finding the revision of a pod of pool %s: %w", controllerOf(pod).Name, err)
	}
	hash, err := p.attribute(ctx, pod.GetNamespace(), f, freshness.RevisionWithin)
	return platform.Stamp{Hash: hash, Enforcement: f.Enforcement}, err
}

func barePodMember(pod *unstructured.Unstructured, own *freshness.Pod) freshness.Member {
	labels := pod.GetLabels()
	return freshness.Member{
		Name:       pod.GetName(),
		UID:        string(pod.GetUID()),
		Controller: controllerOf(pod),
		Deleting:   own.Deleting,
		Used:       labels[PodClaimLabel] != "" || labels[sandboxNameHashLabel] != "",
		Content:    own.Content,
		Proposed:   own.Content,
		PodName:    pod.GetName(),
		Created:    pod.GetCreationTimestamp().Time,
		Bare:       true,
	}
}

func (p *Platform) readForBarePod(ctx context.Context, pod *unstructured.Unstructured, m freshness.Member) (stored, error) {
	var out stored
	pool := bornOf(pod)
	if m.Controller.Kind == freshness.OwnedByPool {
		pool = m.Controller.Name
	}
	g := p.group(ctx, pod.GetNamespace())
	if pool != "" {
		g.get(&out.pool, Pools, pool)
	}
	if node := placement.NodeName(pod); node != "" {
		g.getAt(&out.node, nodes, "", node)
	}
	if err := g.wait(); err != nil {
		return stored{}, err
	}
	if out.pool == nil {
		return out, nil
	}
	var err error
	out.template, err = p.Get(ctx, Templates, pod.GetNamespace(), TemplateOf(out.pool))
	return out, err
}

// bornOf returns the pool that a bare Pod was made by, also after it has left
// it: its name was generated from the pool's, and nobody can change that. ""
// when no name was generated.
func bornOf(pod *unstructured.Unstructured) string {
	name, ok := strings.CutSuffix(pod.GetGenerateName(), "-")
	if !ok {
		return ""
	}
	return name
}

// WasMember reports whether a Pod without an owner was a pool's: its label says
// so, or else its name, and there is such a pool.
func WasMember(pod *unstructured.Unstructured, pool *freshness.Pool) bool {
	name := bornOf(pod)
	return name != "" && (pod.GetLabels()[PodPoolLabel] == NameHash(name) || pool != nil && pool.Name == name)
}

// templateNamedBy returns the template that a bare Pod says it was built from:
// inForce, when it carries the hash of that name, "" when it carries none.
func templateNamedBy(pod *unstructured.Unstructured, inForce string) string {
	switch hash := pod.GetLabels()[TemplateRefHashLabel]; hash {
	case "":
		return ""
	case NameHash(inForce):
		return inForce
	default:
		return "with name hash " + hash
	}
}

// renderPlain renders a template, and the revisions recorded of it, as releases
// without secure defaults do.
func (p *Platform) renderPlain(ctx context.Context, template *unstructured.Unstructured) (freshness.Rendered, error) {
	content, err := RenderPlain(template)
	if err != nil {
		return freshness.Rendered{}, err
	}
	recorded, err := p.History.Revisions(ctx, template)
	if err != nil {
		return freshness.Rendered{}, fmt.Errorf("reading history of template %s: %w", template.GetName(), err)
	}
	out := freshness.Rendered{Content: content}
	for _, r := range recorded {
		if r.Template == nil {
			continue
		}
		if known, err := RenderPlain(r.Template); err == nil {
			out.Known = append(out.Known, freshness.Known{Hash: r.Hash, Content: known})
		}
	}
	return out, nil
}

// RenderPlain returns a template's blueprint as it is: what a bare Pod of a pool
// (v0.1.0, v0.2.1) and a Sandbox of v0.1.0 are built from.
func RenderPlain(template *unstructured.Unstructured) (revision.Blueprint, error) {
	spec, _, err := copyBlueprint(template.Object)
	if err != nil {
		return revision.Blueprint{}, fmt.Errorf("template %s: %w", template.GetName(), err)
	}
	b, err := revision.FromSpec(spec)
	if err != nil {
		return revision.Blueprint{}, fmt.Errorf("template %s: %w", template.GetName(), err)
	}
	return b, nil
}
