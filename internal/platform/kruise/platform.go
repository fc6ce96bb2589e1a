package kruise

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// Platform judges writes by what is stored. All but RepairOff and Turns has to be set.
type Platform struct {
	Objects
	platform.Stored

	// ByUID reads an object whose UID the Ref names in place of a name.
	ByUID    platform.Reader
	History  platform.History
	Defaults settings.Defaults
	// RepairOff: stale cold starts are refused, not repaired, whatever pools say.
	RepairOff bool
	// Turns shares the CPU that snapshots take between namespaces; nil for no bound.
	Turns *fair.Turns
}

// Snapshot reads all that the verdict depends on.
func (p *Platform) Snapshot(ctx context.Context, w platform.Write) (platform.Facts, error) {
	f, _, err := p.readAll(ctx, w)
	return f, err
}

// readAll returns what was read, too.
func (p *Platform) readAll(ctx context.Context, w platform.Write) (platform.Facts, stored, error) {
	namespace := platform.StartNamespace(ctx, w.Judged().GetNamespace(), p.NamespaceLabels)
	objs, err := p.read(ctx, w)
	if err != nil {
		return platform.Facts{Namespace: namespace}, stored{}, err
	}
	done, err := p.Turns.Take(ctx, w.Judged().GetNamespace())
	if err != nil {
		return platform.Facts{Namespace: namespace}, stored{}, err
	}
	defer done()
	f, err := p.snapshot(ctx, namespace, w, objs)
	f.Namespace = namespace
	return f, objs, err
}

// snapshot makes one of what was read.
func (p *Platform) snapshot(ctx context.Context, namespace platform.Namespace, w platform.Write, objs stored) (platform.Facts, error) {
	f := platform.Facts{Snapshot: freshness.Snapshot{Operation: w.Operation, ClaimRef: w.Claim, Held: objs.held}}
	if w.Operation != freshness.Birth {
		f.Besides = besides(w.New)
		f.Claim = objs.wants(w)
	}
	// What says so where the pool is gone was written when there was one.
	f.Enforcement = w.Judged().GetLabels()[settings.EnforcementKey]
	if objs.set != nil {
		if err := p.poolInto(ctx, &f, namespace, w, objs); err != nil {
			return platform.Facts{}, err
		}
	}
	var err error
	if f.Member, err = objs.member(w); err != nil {
		return platform.Facts{}, err
	}
	return f, podInto(&f, w, objs)
}

// poolInto adds the pool, and what is in force for it.
func (p *Platform) poolInto(ctx context.Context, f *platform.Facts, namespace platform.Namespace, w platform.Write, objs stored) error {
	set := objs.set
	annotations := settings.Pool(set.GetAnnotations())
	var least freshness.Strategy
	if p.Defaults.Floors.HasStrategy() {
		labels, err := namespace.Labels()
		if err != nil {
			return fmt.Errorf("finding the least strict strategy of the namespace: %w", err)
		}
		least = p.Defaults.Floors.Strategy(labels)
	}
	f.Enforcement, f.Injected = annotations[settings.EnforcementKey], annotations.InjectedPaths()
	f.Pool = &freshness.Pool{
		Name: set.GetName(), UID: string(set.GetUID()), Deleting: set.GetDeletionTimestamp() != nil, Template: templateOf(set),
		// Stale members are served only where the pool's owner has asked for that.
		Strategy: settings.Defaults{Strategy: freshness.Recreate}.StrategyOf(annotations[settings.StrategyKey], "", least), AdmitAny: annotations.AdmitsAny(), Restarted: annotations.Restarted(time.Now()),
		Suspended: annotations[settings.AttributionKey],
	}
	template := objs.inForce()
	if template == nil {
		return nil
	}
	content, err := contentOf(template)
	if err != nil {
		return fmt.Errorf("rendering what is in force for sandboxset %s: %w", set.GetName(), err)
	}
	f.Template = &freshness.Template{Name: template.GetName(), Hash: content.Hash(), Content: content}
	f.Known, err = p.known(ctx, w, objs)
	return err
}

// podInto adds the Pod, and what it may have beyond its member.
func podInto(f *platform.Facts, w platform.Write, objs stored) (err error) {
	if f.PodInjected, err = platform.PodInjections(objs.pod, f.Injected, volumePaths(w.Judged(), objs.inForce())...); err != nil || objs.pod == nil {
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

// volumePaths are those of the volumes that Pods have for the volumeClaimTemplates of these.
func volumePaths(objs ...*unstructured.Unstructured) []string {
	var paths []string
	for _, of := range objs {
		for _, name := range volumesOf(of) {
			paths = append(paths, "podTemplate.spec.volumes[name="+platform.Quoted(name)+"]")
		}
	}
	return paths
}

// Question is asked of cold starts of which it is known before that they are refused. Here
// that is not known of any.
func (*Platform) Question(platform.Write) platform.Question { return platform.Question{} }

// NewSandbox names the revision that a new Sandbox is built from, and what it has to be
// rewritten to. One that refers to a template does not show the first.
func (p *Platform) NewSandbox(ctx context.Context, sandbox *unstructured.Unstructured) (platform.Stamp, error) {
	w := platform.Write{Operation: freshness.Birth, New: sandbox}
	if poolOf(sandbox).UID == "" {
		w.Operation, w.Claim = freshness.ColdStart, claimOf(sandbox)
	}
	f, objs, err := p.readAll(ctx, w)
	stamp := platform.Stamp{Namespace: f.Namespace, Enforcement: f.Enforcement}
	refers := templateRef(sandbox) != ""
	if err != nil || refers && (w.Operation != freshness.ColdStart || f.Template == nil || !objs.refers()) {
		return stamp, err
	}
	done, err := p.Turns.Take(ctx, sandbox.GetNamespace())
	if err != nil {
		return stamp, err
	}
	defer done()
	if refers {
		if f, err = p.withOwnContents(ctx, f, sandbox, objs.set); err != nil {
			return stamp, err
		}
	}
	if stamp.Hash, err = freshness.RevisionWithin(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err)); err != nil {
		return stamp, err
	}
	stamp.Repaired = platform.RepairNote(sandbox, f, stamp.Hash)
	if stamp.Repair, err = p.repair(ctx, sandbox, f, objs); stamp.Repair != nil {
		stamp.Hash, stamp.Repaired = stamp.Repair.To, stamp.Repair.Note()
	}
	if refers {
		stamp.Hash = ""
	}
	return stamp, err
}
