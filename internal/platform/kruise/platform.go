package kruise

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// Platform judges writes by what is stored. All but Turns has to be set.
type Platform struct {
	Objects
	platform.Stored

	// ByUID reads an object whose UID the Ref names in place of a name.
	ByUID    platform.Reader
	Defaults settings.Defaults
	// Turns shares the CPU that snapshots take between namespaces; nil for no bound.
	Turns *fair.Turns
}

// Snapshot reads all that the verdict depends on. It knows of no older revisions: what is
// not as the pool has it now is refused without the name of what it is.
func (p *Platform) Snapshot(ctx context.Context, w platform.Write) (platform.Facts, error) {
	namespace := platform.StartNamespace(ctx, w.Judged().GetNamespace(), p.NamespaceLabels)
	f, err := p.snapshot(ctx, namespace, w)
	f.Namespace = namespace
	return f, err
}

func (p *Platform) snapshot(ctx context.Context, namespace platform.Namespace, w platform.Write) (platform.Facts, error) {
	objs, err := p.read(ctx, w)
	if err != nil {
		return platform.Facts{}, err
	}
	done, err := p.Turns.Take(ctx, w.Judged().GetNamespace())
	if err != nil {
		return platform.Facts{}, err
	}
	defer done()
	f := platform.Facts{Snapshot: freshness.Snapshot{Operation: w.Operation, ClaimRef: w.Claim, Held: objs.held}}
	if w.Operation != freshness.Birth {
		f.Besides = besides(w.New)
		f.Claim = objs.wants(w)
	}
	// What says so where the pool is gone was written when there was one.
	f.Enforcement = w.Judged().GetLabels()[settings.EnforcementKey]
	if objs.set != nil {
		if err := p.poolInto(&f, namespace, objs); err != nil {
			return platform.Facts{}, err
		}
	}
	if f.Member, err = objs.member(w); err != nil {
		return platform.Facts{}, err
	}
	return f, podInto(&f, w, objs)
}

// poolInto adds the pool, and what is in force for it.
func (p *Platform) poolInto(f *platform.Facts, namespace platform.Namespace, objs stored) error {
	set := objs.set
	said := settings.Pool(set.GetAnnotations())
	var least freshness.Strategy
	if p.Defaults.Floors.HasStrategy() {
		labels, err := namespace.Labels()
		if err != nil {
			return fmt.Errorf("finding the least strict strategy of the namespace: %w", err)
		}
		least = p.Defaults.Floors.Strategy(labels)
	}
	f.Enforcement, f.Injected = said[settings.EnforcementKey], said.InjectedPaths()
	f.Pool = &freshness.Pool{
		Name: set.GetName(), UID: string(set.GetUID()), Deleting: set.GetDeletionTimestamp() != nil, Template: templateOf(set),
		// Nobody rolls the pool in Freshbind's way yet, so stale members are served only
		// where its owner has asked for that.
		Strategy: p.Defaults.StrategyOf(said[settings.StrategyKey], string(freshness.Recreate), least), AdmitAny: said.AdmitsAny(), Restarted: said.Restarted(),
	}
	template := objs.inForce()
	if template == nil {
		return nil
	}
	content, err := p.Render(template)
	if err != nil {
		return fmt.Errorf("rendering what is in force for sandboxset %s: %w", set.GetName(), err)
	}
	f.Template = &freshness.Template{Name: template.GetName(), Hash: content.Hash(), Content: content}
	return nil
}

// podInto adds the Pod, and what it may have beyond its member.
func podInto(f *platform.Facts, w platform.Write, objs stored) (err error) {
	var paths []string
	for _, of := range []*unstructured.Unstructured{w.Judged(), objs.inForce()} {
		for _, name := range volumesOf(of) {
			paths = append(paths, "podTemplate.spec.volumes[name="+platform.Quoted(name)+"]")
		}
	}
	if f.PodInjected, err = platform.PodInjections(objs.pod, f.Injected, paths...); err != nil || objs.pod == nil {
		return err
	}
	if f.Pod, err = platform.ReadPod(objs.pod); err != nil {
		return err
	}
	if shown := podInfo(w.Judged(), "podUID"); shown != "" && shown != string(objs.pod.GetUID()) {
		// Another has taken the name of the one that the Sandbox had.
		f.Pod.ControllerUID = ""
	}
	if node := placement.NodeName(objs.pod); node != "" && w.Operation != freshness.ColdStart {
		f.Pod.NodeLeaving = placement.NodeState(objs.node).Leaving(placement.Tolerations(objs.pod))
		f.Node = &platform.Node{Name: node}
		if objs.node != nil {
			f.Node.ResourceVersion = objs.node.GetResourceVersion()
		}
	}
	return nil
}

// Question is asked of cold starts of which it is known before that they are refused. Here
// that is not known of any.
func (*Platform) Question(platform.Write) platform.Question { return platform.Question{} }

// NewSandbox names the revision that a new Sandbox is built from. One that refers to a
// template does not show it.
func (p *Platform) NewSandbox(ctx context.Context, sandbox *unstructured.Unstructured) (platform.Stamp, error) {
	w := platform.Write{Operation: freshness.Birth, New: sandbox}
	if poolOf(sandbox).UID == "" {
		w.Operation, w.Claim = freshness.ColdStart, claimOf(sandbox)
	}
	f, err := p.Snapshot(ctx, w)
	stamp := platform.Stamp{Namespace: f.Namespace, Enforcement: f.Enforcement}
	if err != nil || templateRef(sandbox) != "" {
		return stamp, err
	}
	stamp.Hash, err = freshness.RevisionWithin(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
	return stamp, err
}

// PodRevision names none: nobody asks for stamps of Pods (Admission).
func (p *Platform) PodRevision(ctx context.Context, pod *unstructured.Unstructured) (platform.Stamp, error) {
	return platform.Stamp{Namespace: platform.StartNamespace(ctx, pod.GetNamespace(), p.NamespaceLabels)}, nil
}
