package exampleplatform

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/manager"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// Guarded is what the manager is handed.
func Guarded() *manager.Guarded {
	return &manager.Guarded{
		Name: "fleets", Objects: Objects{}, Admission: Admission(),
		Connect: func(s manager.Sources) manager.Connected { return manager.Connected{Guard: &Platform{Sources: s}} },
	}
}

// Platform judges writes by what is stored.
type Platform struct {
	Objects
	manager.Sources
}

var _ manager.Guard = (*Platform)(nil)

// Classify says what a write of a Box is: a bind when a Fleet loses it, or when somebody
// gets it who did not have it; a birth when a Fleet gets a new one.
func (*Platform) Classify(op admissionv1.Operation, old, obj *unstructured.Unstructured) (platform.Write, bool) {
	w := platform.Write{Old: old, New: obj}
	switch {
	case op == admissionv1.Create && fleetOf(obj).UID != "":
		w.Operation = freshness.Birth
	case op == admissionv1.Update && (fleetOf(old).UID != "" && fleetOf(obj).UID == "" || claimOf(obj).UID != "" && claimOf(obj) != claimOf(old)):
		w.Operation, w.Claim = freshness.Bind, claimOf(obj)
	default:
		return platform.Write{}, false
	}
	return w, true
}

// Snapshot reads all that the verdict depends on, at once.
func (p *Platform) Snapshot(ctx context.Context, w platform.Write) (platform.Facts, error) {
	namespace := platform.StartNamespace(ctx, w.Judged().GetNamespace(), p.NamespaceLabels)
	f, err := p.snapshot(ctx, w)
	f.Namespace = namespace
	return f, err
}

func (p *Platform) snapshot(ctx context.Context, w platform.Write) (platform.Facts, error) {
	member, err := memberOf(w)
	if err != nil {
		return platform.Facts{}, err
	}
	f := platform.Facts{Snapshot: freshness.Snapshot{Operation: w.Operation, Member: member, ClaimRef: w.Claim}}
	fleet, pod, err := p.read(ctx, w, &f)
	if err != nil {
		return platform.Facts{}, err
	}
	if w.Operation == freshness.Bind {
		ask := w.New.GetAnnotations()[AskKey]
		if w.Claim.UID != "" {
			f.Claim = &freshness.Claim{UID: w.Claim.UID, Pool: ask, AnyPool: ask == ""}
		}
		if still := fleetOf(w.New); still.UID != "" {
			f.Besides = []freshness.Owner{still}
		}
	}
	if fleet != nil {
		poolInto(&f, fleet)
		if err := p.renderInto(ctx, &f, fleet); err != nil {
			return platform.Facts{}, err
		}
	}
	if pod != nil {
		if f.Pod, err = platform.ReadPod(pod); err != nil {
			return platform.Facts{}, err
		}
	}
	f.PodInjected, err = platform.PodInjections(pod, f.Injected)
	return f, err
}

// read gets the member's Fleet and Pod, and notes which other Boxes the claim has.
func (p *Platform) read(ctx context.Context, w platform.Write, f *platform.Facts) (fleet, pod *unstructured.Unstructured, err error) {
	namespace := w.Judged().GetNamespace()
	g, ctx := errgroup.WithContext(ctx)
	if f.Member.Controller.Kind == freshness.OwnedByPool {
		g.Go(func() (err error) {
			fleet, err = p.Get(ctx, Fleets, namespace, f.Member.Controller.Name)
			return err
		})
	}
	if w.Operation == freshness.Bind || w.Operation == freshness.Idle {
		g.Go(func() (err error) {
			pod, err = p.Get(ctx, pods, namespace, f.Member.PodName)
			return err
		})
	}
	var mu sync.Mutex
	for _, name := range w.MayHold {
		if name == f.Member.Name {
			continue
		}
		g.Go(func() error {
			box, err := p.Get(ctx, Boxes, namespace, name)
			if err == nil && box != nil && box.GetDeletionTimestamp() == nil && claimOf(box) == w.Claim {
				mu.Lock()
				defer mu.Unlock()
				f.Held = append(f.Held, name)
			}
			return err
		})
	}
	err = g.Wait()
	return fleet, pod, err
}

// poolInto adds the Fleet as pool, and returns what its owner says of injected paths.
func poolInto(f *platform.Facts, fleet *unstructured.Unstructured) (injected string) {
	annotations := settings.Pool(fleet.GetAnnotations())
	f.Enforcement, f.Injected = annotations[settings.EnforcementKey], annotations.InjectedPaths()
	f.Pool = &freshness.Pool{
		Name: fleet.GetName(), UID: string(fleet.GetUID()), Deleting: fleet.GetDeletionTimestamp() != nil, Template: fleet.GetName(),
		// A Fleet has no strategy of its own. Where its owner annotates none, stale Boxes are
		// never wanted.
		Strategy: settings.Defaults{Strategy: freshness.Recreate}.StrategyOf(annotations[settings.StrategyKey], "", ""), AdmitAny: annotations.AdmitsAny(), Restarted: annotations.Restarted(time.Now()),
		Suspended: annotations[settings.AttributionKey],
	}
	return annotations[settings.InjectedPathsKey]
}

// renderInto adds the Fleet as template in force, and as it was before.
func (p *Platform) renderInto(ctx context.Context, f *platform.Facts, fleet *unstructured.Unstructured) error {
	content, err := p.Render(fleet)
	if err != nil {
		return fmt.Errorf("rendering fleet %s: %w", fleet.GetName(), err)
	}
	f.Template = &freshness.Template{Name: fleet.GetName(), Hash: content.Hash(), Content: content}
	recorded, err := p.History.Revisions(ctx, fleet)
	if err != nil {
		return fmt.Errorf("reading history of fleet %s: %w", fleet.GetName(), err)
	}
	for _, r := range recorded {
		f.Known = append(f.Known, freshness.Known{Hash: r.Hash, Content: r.Rendered})
	}
	return nil
}

// memberOf reads a Box as it was before the write.
func memberOf(w platform.Write) (freshness.Member, error) {
	box := w.Judged()
	content, err := contentOf(box)
	if err != nil {
		return freshness.Member{}, fmt.Errorf("reading box %s: %w", box.GetName(), err)
	}
	m := freshness.Member{
		Name: box.GetName(), UID: string(box.GetUID()), Controller: fleetOf(box), Deleting: box.GetDeletionTimestamp() != nil,
		Used: claimOf(box).UID != "", Generation: box.GetGeneration(), Content: content, Proposed: content,
		PodName: box.GetName(), ProposedPodName: box.GetName(), Created: box.GetCreationTimestamp().Time,
	}
	if m.Controller.UID == "" {
		m.Controller = claimOf(box)
	}
	if w.Operation == freshness.Bind {
		if m.Proposed, err = contentOf(w.New); err != nil {
			return freshness.Member{}, fmt.Errorf("reading box %s as it is to be: %w", box.GetName(), err)
		}
	}
	return m, nil
}

// Question is asked of cold starts alone, and there are none.
func (*Platform) Question(platform.Write) platform.Question { return platform.Question{} }

// Answer is the same for every denial: whoever wanted the Box looks for another.
func (*Platform) Answer(freshness.Operation, freshness.Fault) (code int32, reason metav1.StatusReason) {
	return http.StatusConflict, metav1.StatusReasonConflict
}

// Undecided is no denial: whoever wanted the Box asks for it again.
func (*Platform) Undecided(freshness.Operation) (code int32, reason metav1.StatusReason) {
	return http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
}

// NewSandbox names the revision that a new Box is built from.
func (p *Platform) NewSandbox(ctx context.Context, box *unstructured.Unstructured) (platform.Stamp, error) {
	f, err := p.Snapshot(ctx, platform.Write{Operation: freshness.Birth, New: box})
	stamp := platform.Stamp{Namespace: f.Namespace, Enforcement: f.Enforcement}
	if err == nil {
		stamp.Hash, err = freshness.RevisionWithin(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
	}
	return stamp, err
}

// PodRevision names the revision that a Box's Pod is built from.
func (p *Platform) PodRevision(ctx context.Context, pod *unstructured.Unstructured) (platform.Stamp, error) {
	stamp := platform.Stamp{Namespace: platform.StartNamespace(ctx, pod.GetNamespace(), p.NamespaceLabels)}
	box, err := p.Get(ctx, Boxes, pod.GetNamespace(), boxOf(pod))
	if err != nil || box == nil {
		return stamp, err
	}
	f, err := p.snapshot(ctx, platform.Write{Operation: freshness.Birth, New: box})
	if err != nil {
		return stamp, err
	}
	stamp.Enforcement = f.Enforcement
	if f.Pod, err = platform.ReadPod(pod); err != nil {
		return stamp, err
	}
	if f.PodInjected, err = platform.PodInjections(pod, f.Injected); err != nil {
		return stamp, err
	}
	stamp.Hash, err = freshness.PodRevisionWithin(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
	return stamp, err
}
