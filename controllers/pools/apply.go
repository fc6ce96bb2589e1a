package pools

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
)

// write deletes, hides and shows members. Each write applies to exactly the
// version that was judged; one that is another by now is looked at again when
// its event comes. A member that cannot be written to is left alone for a while,
// and holds up no other.
func (p *Controller) write(ctx context.Context, m *poolRecord, s *poolState, plan freshness.Plan) error {
	deletes := p.attempt(ctx, s, plan.Delete, p.delete)
	s.deleted = len(deletes.went)
	for _, uid := range deletes.done {
		m.leaving[uid] = true
	}
	m.unseen = m.unseen || len(deletes.done)+deletes.unclear > 0
	p.recordDeletes(s, deletes.done)
	if m.rollout.Replacing.Deleted() == len(plan.Delete) && len(deletes.done) > 0 {
		// Nothing else was awaited: its time begins now.
		m.rollout.Progressed = s.Now
	}
	m.rollout.Replacing = plan.Replacing(deletes.went)
	if deletes.unclear > 0 {
		// What the cache shows may not have them any more.
		m.proven, m.unclear = false, true
	}
	p.backOff(m, s, deletes, eventFailedDelete, "delete")
	hides := p.attempt(ctx, s, plan.Hide, func(ctx context.Context, member *members.Member) (bool, error) {
		return p.patch(ctx, member, p.visible.Hide(member))
	})
	if len(hides.done) > 0 {
		p.events.Eventf(s.pool, nil, corev1.EventTypeNormal, eventHidden, actionRollout, "hid %d members that are not of %s", len(hides.done), s.Rollout.Revision)
	}
	p.backOff(m, s, hides, eventFailedUpdate, "hide")
	shows := p.attempt(ctx, s, plan.Show, func(ctx context.Context, member *members.Member) (bool, error) {
		return p.patch(ctx, member, p.visible.Show(member))
	})
	p.backOff(m, s, shows, eventFailedUpdate, "show")
	return errors.Join(deletes.err, hides.err, shows.err)
}

// recordDeletes has the pool tell of members that were deleted, and why.
func (p *Controller) recordDeletes(s *poolState, deleted []types.UID) {
	cordoned := 0
	for i, state := range s.Members {
		if state.OnCordonedNode && slices.Contains(deleted, s.members[i].UID) {
			cordoned++
		}
	}
	if cordoned > 0 {
		p.events.Eventf(s.pool, nil, corev1.EventTypeNormal, eventMoved, actionRollout, "deleted %d members on nodes that are cordoned", cordoned)
	}
	if n := len(deleted) - cordoned; n > 0 {
		p.events.Eventf(s.pool, nil, corev1.EventTypeNormal, eventReplaced, actionRollout, "deleted %d members that are not of %s", n, s.Rollout.Revision)
	}
}

// outcome is what became of writes to members.
type outcome struct {
	done []types.UID
	// refused are the members that the API server refused to have written to, and
	// why it did the first.
	refused []*members.Member
	why     error
	// unclear is how many writes may have been done or not, went are the members,
	// by their index, of which that is so, or that were written to.
	unclear int
	went    []int
	// err is why not all were tried.
	err error
}

// attempt writes to members, given by their index.
func (p *Controller) attempt(
	ctx context.Context, s *poolState, members []int, write func(context.Context, *members.Member) (bool, error),
) outcome {
	done, errs := make([]bool, len(members)), make([]error, len(members))
	o := outcome{}
	first, stopped := slowStart(ctx, len(members), func(ctx context.Context, i int) error {
		done[i], errs[i] = write(ctx, s.members[members[i]].Member)
		return errs[i]
	})
	if stopped {
		o.err = first
	}
	for i, k := range members {
		member := s.members[k].Member
		switch {
		case done[i]:
			o.done, o.went = append(o.done, member.UID), append(o.went, k)
		case refusedByServer(errs[i]):
			if o.refused = append(o.refused, member); o.why == nil {
				o.why = errs[i]
			}
		case errs[i] != nil && !errors.Is(errs[i], errNotLeading):
			o.unclear, o.went = o.unclear+1, append(o.went, k)
		}
	}
	return o
}

// refusedByServer reports whether the error is an answer about this very object,
// not about the state of the API server.
func refusedByServer(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsTooManyRequests(err) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code <= http.StatusInternalServerError
}

// backOff leaves members alone for a while, and says so when it begins to.
func (p *Controller) backOff(m *poolRecord, s *poolState, o outcome, reason, verb string) {
	var names []string
	for _, member := range o.refused {
		if m.failures.note(member.UID, s.Now) {
			names = append(names, member.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	also := ""
	if n := len(names) - 1; n > 0 {
		also = fmt.Sprintf(" and %d more", n)
	}
	p.events.Eventf(s.pool, nil, corev1.EventTypeWarning, reason, actionRollout,
		"cannot %s member %s%s; will try again, and goes on with the others: %.300s", verb, names[0], also, o.why.Error())
}

// errNotLeading ends a plan half-way. The next leader makes its own.
var errNotLeading = errors.New("the lease was not renewed in time, so another leader may be at work")

func (p *Controller) delete(ctx context.Context, member *members.Member) (bool, error) {
	if !p.leads() {
		return false, errNotLeading
	}
	err := p.client.Delete(ctx, p.view.named(member), client.Preconditions{
		UID: ptr.To(member.UID), ResourceVersion: ptr.To(member.GetResourceVersion()),
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("deleting member %s: %w", member.Name, err)
	}
	logf.FromContext(ctx).V(2).Info("Deleted member", "member", member.Name)
	return true, nil
}

func (p *Controller) patch(ctx context.Context, member *members.Member, patch []byte) (bool, error) {
	if !p.leads() {
		return false, errNotLeading
	}
	err := p.client.Patch(ctx, p.view.named(member), client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("hiding or showing member %s: %w", member.Name, err)
	}
	return true, nil
}

// named is a member to write to.
func (v *View) named(m *members.Member) *unstructured.Unstructured {
	return namedAs(v.kinds.Sandboxes, m.GetNamespace(), m.Name)
}

// named is an object to write to: what the cache shows must not be changed.
func named(obj *unstructured.Unstructured) *unstructured.Unstructured {
	return namedAs(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
}

func namedAs(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := object(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// suspect has members judged once more, by live reads, that have come to be on a
// node that is about to go, or whose Pod may be another one than it was. Under the
// rules of a bind nobody can be given them.
func (p *Controller) suspect(ctx context.Context, m *poolRecord, s *poolState) error {
	draining, err := p.view.OnDrainingNodes(ctx, s.members)
	if err != nil {
		return fmt.Errorf("looking for members on nodes that leave: %w", err)
	}
	was := m.onDrainingNode
	m.onDrainingNode = make(map[types.UID]bool, len(draining))
	var others []*members.Member
	for _, member := range draining {
		// What is noted is looked at again until it is settled.
		if was[member.UID] {
			m.onDrainingNode[member.UID] = true
			continue
		}
		others = append(others, member)
	}
	// A zone that fails takes many at once, and their successors all start then.
	for _, member := range others[:p.budget.TakeDeletes(client.ObjectKeyFromObject(s.pool), len(others))] {
		if p.refused.note(refusalOf(member), freshness.FaultMember) {
			m.onDrainingNode[member.UID] = true
		}
	}
	for i := range s.members {
		member := &s.members[i]
		if doubt := member.doubt.Value(); doubt != "" && !s.Members[i].Leaving && m.doubted[member.UID] != doubt {
			m.doubted[member.UID] = doubt
			refusal := refusalOf(member)
			refusal.Doubted = true
			p.refused.note(refusal, freshness.FaultMember)
		}
	}
	return nil
}
