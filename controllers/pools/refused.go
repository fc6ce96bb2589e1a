// Package pools keeps the members of pools current: it plans and carries out rollouts,
// deletes members that can never be bound again, and offers those again that were
// refused without fault of their own.
package pools

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// Refusal names a member whose bind was refused.
type Refusal struct {
	types.NamespacedName
	UID types.UID
	// Overdue: a bare Pod that left its pool long ago.
	Overdue bool
	// Doubted: no bind of it was refused, and it may be fine.
	Doubted bool
	// Returning: somebody had it, and its pool was not given it back.
	Returning bool
}

// identified is an object that was refused.
type identified interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
}

func refusalOf(obj identified) Refusal {
	return Refusal{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}, UID: obj.GetUID()}
}

// Snapshots takes what a verdict depends on.
type Snapshots interface {
	Snapshot(ctx context.Context, w platform.Write) (platform.Facts, error)
}

// Live reads one Sandbox as it is stored now; nil when it does not exist.
type Live func(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error)

// Refused settles what a refused bind leaves behind. It runs beside the
// admission handlers of every replica, because only the replica that refused
// knows, and outside of them, because a handler must have no side effects. Each
// member is judged again before anything is done, so that a hint which is late,
// doubled or wrong does no harm.
type Refused struct {
	client    client.Client
	live      Live
	snapshots Snapshots
	visible   Visibility
	// enforcedNow answers as it is stored: deletes end at once when a mode goes back to audit.
	enforcedNow Enforced
	outage      *Outage
	hints       hints.Queue[Refusal]
	waits       waits[Refusal]
}

// Visibility shows members again, and tells whether they are shown.
type Visibility interface {
	platform.Visibility
	platform.Metadata
}

// SetupRefused adds the controller to the manager.
func SetupRefused(mgr manager.Manager, live Live, snapshots Snapshots, visible Visibility, enforcedNow Enforced, outage *Outage) (*Refused, error) {
	r := &Refused{
		client: mgr.GetClient(), live: live, snapshots: snapshots, visible: visible, enforcedNow: enforcedNow, hints: hints.New[Refusal](), outage: outage,
	}
	err := managed.Controller(mgr, "refused", controller.TypedOptions[Refusal]{
		NeedLeaderElection:      ptr.To(false),
		MaxConcurrentReconciles: 10,
	}).WatchesRawSource(source.TypedFunc[Refusal](r.hints.Feed)).Complete(r)
	if err != nil {
		return nil, fmt.Errorf("setting up the controller of refused members: %w", err)
	}
	return r, nil
}

const (
	// maxRecheck is how long a state that does not pass is left alone in the end.
	maxRecheck = 5 * time.Minute
	// recheck is how long a state that passes by itself is given.
	recheck = time.Second
	// spare is how long a member is left alone that was refused without fault
	// of its own. The claim controller tries five times in a row; a member that
	// is hidden meanwhile makes it turn to the next one and try that in vain.
	spare = 200 * time.Millisecond
)

// Note tells that a bind of the member was refused, and for whose fault. Also
// one that is fine has to be offered again: upstream takes a member off its
// queue to try it, and after a Conflict does not put it back (v1.0.3,
// extensions/controllers/sandboxclaim_controller.go, adoptSandboxFromCandidates).
func (r *Refused) Note(member *unstructured.Unstructured, fault freshness.Fault) {
	r.note(refusalOf(member), fault)
}

// NoteReturn tells that a used Sandbox was refused to its pool. Whoever brings it back
// would try that for ever, and nobody else wants it.
func (r *Refused) NoteReturn(sandbox *unstructured.Unstructured) {
	refusal := refusalOf(sandbox)
	refusal.Returning = true
	r.note(refusal, freshness.FaultMember)
}

func (r *Refused) note(member Refusal, fault freshness.Fault) bool {
	after := time.Duration(0)
	if fault != freshness.FaultMember {
		after = spare
	}
	return r.hints.Note(member, after)
}

// Reconcile settles a member, or comes back to it, each time later.
func (r *Refused) Reconcile(ctx context.Context, req Refusal) (reconcile.Result, error) {
	first, err := r.settle(ctx, req)
	if err != nil || first == 0 {
		r.waits.forget(req)
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.waits.next(req, first, maxRecheck)}, nil
}

// settle judges the member as it is now, and deletes or offers it. It returns after
// what time to come back at first; 0 for never.
func (r *Refused) settle(ctx context.Context, req Refusal) (time.Duration, error) {
	member, err := r.live(ctx, req.NamespacedName)
	if err != nil {
		return 0, err
	}
	if member == nil || member.GetUID() != req.UID || member.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	w := platform.Write{Operation: freshness.Idle, New: member}
	if req.Returning {
		w.Operation = freshness.Return
	}
	facts, err := r.snapshots.Snapshot(ctx, w)
	if err != nil {
		return 0, fmt.Errorf("judging refused member %s: %w", req, err)
	}
	v, err := freshness.JudgeWithin(facts.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
	if err != nil {
		return 0, err
	}
	logf.FromContext(ctx).V(2).Info("Settling refused member", "reason", v.Reason, "allowed", v.Allowed)
	if facts.Member.Controller.Kind != freshness.OwnedByPool || v.Allowed && (req.Doubted || req.Returning) {
		return 0, nil
	}
	return r.act(ctx, member, v, facts)
}

// act does what the verdict on an idle member calls for, and returns as settle does.
func (r *Refused) act(ctx context.Context, member *unstructured.Unstructured, v freshness.Verdict, facts platform.Facts) (time.Duration, error) {
	switch {
	case v.Allowed:
		return 0, r.offer(ctx, member)
	case ofPools(v) && facts.Operation != freshness.Return && facts.Class() != freshness.Current:
		// How many of those may go, and when, is for the controller of pools: only
		// it sees the whole pool. It shows a hidden one again, which offers it.
		if !r.visible.IsShown(member) {
			return 0, nil
		}
	case v.Reason.Fault() == freshness.FaultMember:
		if wait, err := r.outage.spares(ctx, v, facts.Node); wait || err != nil {
			return outageKept, err
		}
		act, err := r.enforcedNow(ctx, member.GetNamespace(), facts.Enforcement)
		if err != nil {
			return 0, fmt.Errorf("reading the mode for refused member %s: %w", member.GetName(), err)
		}
		if !act {
			return 0, nil
		}
		return 0, r.delete(ctx, member)
	}
	// It passes by itself, and the member must not have been forgotten then.
	return recheck, nil
}

// ofPools reports whether only what the member is built from speaks against it:
// its life is judged first.
func ofPools(v freshness.Verdict) bool {
	return v.Reason == freshness.StaleRevision || v.Reason == freshness.UnknownRevision || v.Reason == freshness.TemplateMismatch
}

// delete removes exactly the version that was judged: a claim that got the
// member meanwhile keeps it.
func (r *Refused) delete(ctx context.Context, member *unstructured.Unstructured) error {
	err := r.client.Delete(ctx, member, client.Preconditions{
		UID: ptr.To(member.GetUID()), ResourceVersion: ptr.To(member.GetResourceVersion()),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting refused member %s: %w", member.GetName(), err)
	}
	return nil
}

// offer has the claim controller queue the member: it does so when a member
// becomes adoptable, or its node changes, and forgets one that it tried in vain.
func (r *Refused) offer(ctx context.Context, member *unstructured.Unstructured) error {
	if patch, ok := r.visible.Offer(member); ok && r.visible.IsShown(member) {
		err := r.client.Status().Patch(ctx, member, client.RawPatch(types.MergePatchType, patch))
		return wrap(err, "offering member %s", member)
	}
	if r.visible.IsShown(member) {
		if err := r.patch(ctx, member, r.visible.Hide(member)); err != nil {
			return wrap(err, "hiding member %s", member)
		}
	}
	return wrap(r.patch(ctx, member, r.visible.Show(member)), "offering member %s", member)
}

// wrap names the member; one that is gone needs nothing any more.
func wrap(err error, format string, member *unstructured.Unstructured) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", member.GetName(), err)
}

// patch leaves the stored object, with its new resourceVersion, in member.
func (r *Refused) patch(ctx context.Context, member *unstructured.Unstructured, patch []byte) error {
	return r.client.Patch(ctx, member, client.RawPatch(types.MergePatchType, patch))
}
