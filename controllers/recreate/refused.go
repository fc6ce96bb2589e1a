// Package recreate puts right what a pool's members have become: a member that
// can never be bound again is deleted, one that was refused without fault of
// its own is offered again.
package recreate

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// Refusal names a member whose bind was refused.
type Refusal struct {
	types.NamespacedName
	UID types.UID
	// Overdue: a bare Pod that left its pool long ago.
	Overdue bool
}

func refusalOf(obj *unstructured.Unstructured) Refusal {
	return Refusal{NamespacedName: client.ObjectKeyFromObject(obj), UID: obj.GetUID()}
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
	outage    *Outage
	hints     hints[Refusal]
}

// SetupRefused adds the controller to the manager.
func SetupRefused(mgr manager.Manager, live Live, snapshots Snapshots) (*Refused, error) {
	r := &Refused{
		client: mgr.GetClient(), live: live, snapshots: snapshots, hints: newHints[Refusal](),
		outage: NewOutage(mgr.GetAPIReader(), clock.RealClock{}),
	}
	err := builder.TypedControllerManagedBy[Refusal](mgr).Named("refused").
		WatchesRawSource(source.TypedFunc[Refusal](r.hints.feed)).
		WithOptions(controller.TypedOptions[Refusal]{
			NeedLeaderElection:      ptr.To(false),
			MaxConcurrentReconciles: 10,
		}).Complete(r)
	if err != nil {
		return nil, fmt.Errorf("setting up the controller of refused members: %w", err)
	}
	return r, nil
}

const (
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
	after := time.Duration(0)
	if fault != freshness.FaultMember {
		after = spare
	}
	r.hints.note(refusalOf(member), after)
}

// Reconcile judges the member as it is now, and deletes or offers it.
func (r *Refused) Reconcile(ctx context.Context, req Refusal) (reconcile.Result, error) {
	member, err := r.live(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if member == nil || member.GetUID() != req.UID || member.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	facts, err := r.snapshots.Snapshot(ctx, platform.Write{Operation: freshness.Idle, New: member})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("judging refused member %s: %w", req, err)
	}
	v := freshness.Judge(facts.Snapshot)
	logf.FromContext(ctx).V(2).Info("Settling refused member", "reason", v.Reason, "allowed", v.Allowed)
	switch {
	case facts.Member.Controller.Kind != freshness.OwnedByPool:
		return reconcile.Result{}, nil
	case v.Allowed:
		return reconcile.Result{}, r.offer(ctx, member)
	case byContent(v) && facts.Class() != freshness.Current:
		// How many of those may go, and when, is for the controller of pools: only
		// it sees the whole pool. It shows a hidden one again, which offers it.
		if !agentsandbox.Shown(member) {
			return reconcile.Result{}, nil
		}
	case v.Reason.Fault() == freshness.FaultMember:
		if wait, err := r.outage.spares(ctx, v); wait || err != nil {
			return reconcile.Result{RequeueAfter: outageKept}, err
		}
		return reconcile.Result{}, r.delete(ctx, member)
	}
	// It passes by itself, and the member must not have been forgotten then.
	return reconcile.Result{RequeueAfter: recheck}, nil
}

// byContent reports whether only what the member is built from speaks against it:
// its life is judged first.
func byContent(v freshness.Verdict) bool {
	return v.Reason == freshness.StaleRevision || v.Reason == freshness.UnknownRevision
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
	if patch, ok := agentsandbox.OfferPatch(member); ok && agentsandbox.Shown(member) {
		err := r.client.Status().Patch(ctx, member, client.RawPatch(types.MergePatchType, patch))
		return wrap(err, "offering member %s", member)
	}
	if agentsandbox.Shown(member) {
		if err := r.patch(ctx, member, agentsandbox.HidePatch(member)); err != nil {
			return wrap(err, "hiding member %s", member)
		}
	}
	return wrap(r.patch(ctx, member, agentsandbox.ShowPatch(member)), "offering member %s", member)
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
