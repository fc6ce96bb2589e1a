package pools

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/managed"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

// Pods settles what a bind of a bare Pod leaves behind that failed. No status
// makes those releases (v0.1, v0.2) turn to another Pod: the claim controller
// tries the same one until it is deleted, and forgets one that it took in vain,
// be it that we refused its Sandbox or that there was one already
// (kubernetes-sigs/agent-sandbox#418). Like
// Refused it runs on every replica and judges again before it does anything.
type Pods struct {
	client client.Client
	// lists reads from the API server, not from a cache.
	lists     client.Reader
	live      Live
	snapshots Snapshots
	kinds     Kinds
	objects   Holders
	released  platform.ReleasedPods
	// enforcedNow answers as it is stored: deletes end at once when a mode goes back to audit.
	enforcedNow Enforced
	outage      *Outage
	hints       hints.Queue[Refusal]
	waits       waits[Refusal]
}

// Kinds are the served versions of what tells whether a Pod is in use.
type Kinds struct{ Sandboxes, Claims schema.GroupVersionKind }

// Holders tells which claim has a Sandbox, and which Pod it runs in.
type Holders interface {
	platform.Owners
	platform.Metadata
}

// SetupPods adds the controller to the manager. live reads Pods.
func SetupPods(mgr manager.Manager, live Live, snapshots Snapshots, kinds Kinds, objects Holders, released platform.ReleasedPods, enforcedNow Enforced, outage *Outage) (*Pods, error) {
	p := &Pods{
		client: mgr.GetClient(), lists: mgr.GetAPIReader(), live: live, snapshots: snapshots, kinds: kinds, objects: objects, released: released,
		enforcedNow: enforcedNow, hints: hints.New[Refusal](), outage: outage,
	}
	err := managed.Controller(mgr, "refused-pods", controller.TypedOptions[Refusal]{
		NeedLeaderElection:      ptr.To(false),
		MaxConcurrentReconciles: 10,
	}).WatchesRawSource(source.TypedFunc[Refusal](p.hints.Feed)).Complete(p)
	if err != nil {
		return nil, fmt.Errorf("setting up the controller of refused pods: %w", err)
	}
	return p, nil
}

// released is how long after it left its pool a Pod should be in use: the
// Sandbox is created next, and a claim controller whose create failed has tried
// again by then.
const released = 30 * time.Second

// Note tells that a bind of the Pod was refused.
func (p *Pods) Note(pod *unstructured.Unstructured) { p.hints.Note(refusalOf(pod), 0) }

// NoteReleased tells that the Pod was allowed to leave its pool: whether a
// Sandbox came to run in it no later write tells.
func (p *Pods) NoteReleased(pod *unstructured.Unstructured) {
	overdue := refusalOf(pod)
	overdue.Overdue = true
	p.hints.Note(overdue, released)
}

// Reconcile settles a Pod, or comes back to it, each time later.
func (p *Pods) Reconcile(ctx context.Context, req Refusal) (reconcile.Result, error) {
	outcome, err := p.settle(ctx, req)
	if err != nil || outcome != lookAgain {
		p.waits.forget(req)
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: p.waits.next(req, recheck, maxRecheck)}, nil
}

// settle judges the Pod as it is now, and deletes it when nobody can ever take it.
func (p *Pods) settle(ctx context.Context, req Refusal) (settlement, error) {
	pod, err := p.live(ctx, req.NamespacedName)
	if err != nil {
		return "", err
	}
	if pod == nil || pod.GetUID() != req.UID || pod.GetDeletionTimestamp() != nil {
		return leave, nil
	}
	var outcome settlement
	if metav1.GetControllerOf(pod) == nil {
		outcome, err = p.settleReleased(ctx, pod, req.Overdue)
	} else {
		outcome, err = p.settleMember(ctx, pod)
	}
	if err != nil {
		return "", fmt.Errorf("judging refused pod %s: %w", req, err)
	}
	logf.FromContext(ctx).V(2).Info("Settling refused pod", "outcome", outcome)
	if outcome == remove {
		err = p.delete(ctx, pod)
	}
	return outcome, err
}

// settlement is what happens to a refused Pod.
type settlement string

const (
	leave     settlement = "leave"
	remove    settlement = "remove"
	lookAgain settlement = "lookAgain"
)

// settleMember: a pool has the Pod still. A claim that wants it tries again, so
// nothing has to be done for one that is without fault.
func (p *Pods) settleMember(ctx context.Context, pod *unstructured.Unstructured) (settlement, error) {
	facts, err := p.snapshots.Snapshot(ctx, platform.Write{Operation: freshness.Idle, New: pod})
	if err != nil {
		return "", err
	}
	v, err := freshness.JudgeWithin(facts.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
	if err != nil {
		return "", err
	}
	if facts.Member.Controller.Kind == freshness.OwnedByPool && v.DeletesBarePod() {
		if wait, err := p.outage.spares(ctx, v, facts.Node); wait || err != nil {
			return lookAgain, err
		}
		return p.removed(ctx, pod, facts)
	}
	return leave, nil
}

// settleReleased: the Pod has left its pool. It stays while a Sandbox runs in
// it, and while the claim that it was given to may still take it. Of one that
// v0.1.0 took nothing tells for whom, so that without fault of its own it is lost
// only when no Sandbox came for long.
func (p *Pods) settleReleased(ctx context.Context, pod *unstructured.Unstructured, overdue bool) (settlement, error) {
	facts, err := p.snapshots.Snapshot(ctx, platform.Write{Operation: freshness.Released, New: pod})
	if err != nil {
		return "", err
	}
	if !p.released.WasMember(pod, facts.Pool) {
		return leave, nil
	}
	sandboxes, err := p.list(ctx, p.kinds.Sandboxes, pod.GetNamespace())
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(sandboxes, func(s metav1.PartialObjectMetadata) bool { return p.objects.PodOf(&s) == pod.GetName() }) {
		return leave, nil
	}
	claim := p.released.TakenFor(pod)
	served := slices.ContainsFunc(sandboxes, func(s metav1.PartialObjectMetadata) bool { return p.ownedBy(&s, claim) })
	waiting, err := p.isWaiting(ctx, pod.GetNamespace(), claim)
	if err != nil {
		return "", err
	}
	v, err := freshness.JudgeWithin(facts.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
	if err != nil {
		return "", err
	}
	fault := !v.Allowed && v.Reason.Fault() == freshness.FaultMember
	switch {
	case waiting && !served && !fault:
		return lookAgain, nil
	case claim == "" && !fault && !overdue:
		return leave, nil
	}
	return p.removed(ctx, pod, facts)
}

// removed is what happens to a Pod that nobody can take, by the mode.
func (p *Pods) removed(ctx context.Context, pod *unstructured.Unstructured, facts platform.Facts) (settlement, error) {
	if act, err := p.enforcedNow(ctx, pod.GetNamespace(), facts.Enforcement); err != nil || !act {
		return leave, err
	}
	return remove, nil
}

// ownedBy reports whether a claim of that UID has the Sandbox.
func (p *Pods) ownedBy(sandbox *metav1.PartialObjectMetadata, claim string) bool {
	return slices.ContainsFunc(p.objects.Claims(sandbox), func(o freshness.Owner) bool { return o.UID == claim })
}

// isWaiting reports whether the claim of that UID, "" for none, is alive.
func (p *Pods) isWaiting(ctx context.Context, namespace, uid string) (bool, error) {
	if uid == "" {
		return false, nil
	}
	claims, err := p.list(ctx, p.kinds.Claims, namespace)
	return slices.ContainsFunc(claims, func(c metav1.PartialObjectMetadata) bool {
		return c.UID == types.UID(uid) && c.DeletionTimestamp == nil
	}), err
}

func (p *Pods) list(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := p.lists.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing %s in %s: %w", kind.Kind, namespace, err)
	}
	return list.Items, nil
}

// delete removes exactly the version that was judged: a Sandbox that got the
// Pod meanwhile has made it another one.
func (p *Pods) delete(ctx context.Context, pod *unstructured.Unstructured) error {
	err := p.client.Delete(ctx, pod, client.Preconditions{
		UID: ptr.To(pod.GetUID()), ResourceVersion: ptr.To(pod.GetResourceVersion()),
	})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("deleting refused pod %s, which claims try until it is gone; the chart grants it with legacy.barePods=true: %w", pod.GetName(), err)
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("deleting refused pod %s: %w", pod.GetName(), err)
	}
	return nil
}
