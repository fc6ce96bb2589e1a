package recreate

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

const (
	// firstBatch and parallel bound how many writes of one pool are in flight:
	// batches double from the first to the last size, so that an API server
	// which refuses them is not asked a thousand times (slow start, as the
	// controller of ReplicaSets does it).
	firstBatch, parallel = 4, 64
)

// write deletes, hides and shows members. Each write applies to exactly the
// version that was judged; one that is another by now is looked at again when
// its event comes.
func (p *Pools) write(ctx context.Context, m *memory, s *situation, plan freshness.Plan, doomed []int) error {
	deleted := make([]bool, len(doomed))
	err := slowStart(ctx, len(doomed), func(ctx context.Context, i int) error {
		var err error
		deleted[i], err = p.delete(ctx, s.members[doomed[i]])
		return err
	})
	n := 0
	for i, gone := range deleted {
		if gone {
			n++
			m.leaving[s.members[doomed[i]].GetUID()] = true
		}
	}
	if n > 0 {
		p.events.Eventf(s.pool, nil, corev1.EventTypeNormal, eventReplaced, actionRollout, "deleted %d members that are not of %s", n, s.Rollout.Revision)
	}
	hide := slowStart(ctx, len(plan.Hide), func(ctx context.Context, i int) error {
		member := s.members[plan.Hide[i]]
		return p.patch(ctx, member, agentsandbox.HidePatch(member))
	})
	if len(plan.Hide) > 0 {
		p.events.Eventf(s.pool, nil, corev1.EventTypeNormal, eventHidden, actionRollout, "hid %d members that are not of %s", len(plan.Hide), s.Rollout.Revision)
	}
	show := slowStart(ctx, len(plan.Show), func(ctx context.Context, i int) error {
		member := s.members[plan.Show[i]]
		return p.patch(ctx, member, agentsandbox.ShowPatch(member))
	})
	return errors.Join(err, hide, show)
}

// errNotLeading ends a plan half-way. The next leader makes its own.
var errNotLeading = errors.New("the lease was not renewed in time, so another leader may be at work")

func (p *Pools) delete(ctx context.Context, member *unstructured.Unstructured) (bool, error) {
	if !p.leads() {
		return false, errNotLeading
	}
	err := p.client.Delete(ctx, named(member), client.Preconditions{
		UID: ptr.To(member.GetUID()), ResourceVersion: ptr.To(member.GetResourceVersion()),
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("deleting member %s: %w", member.GetName(), err)
	}
	logf.FromContext(ctx).V(2).Info("Deleted member", "member", member.GetName())
	return true, nil
}

func (p *Pools) patch(ctx context.Context, member *unstructured.Unstructured, patch []byte) error {
	if !p.leads() {
		return errNotLeading
	}
	err := p.client.Patch(ctx, named(member), client.RawPatch(types.MergePatchType, patch))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("hiding or showing member %s: %w", member.GetName(), err)
}

// named is an object to write to: what the cache shows must not be changed.
func named(obj *unstructured.Unstructured) *unstructured.Unstructured {
	u := object(obj.GroupVersionKind())
	u.SetNamespace(obj.GetNamespace())
	u.SetName(obj.GetName())
	return u
}

// slowStart runs do for 0 to n-1, and stops after a batch with errors.
func slowStart(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	for start, batch := 0, firstBatch; start < n; batch = min(2*batch, parallel) {
		end := min(start+batch, n)
		g, ctx := errgroup.WithContext(ctx)
		for i := start; i < end; i++ {
			g.Go(func() error { return do(ctx, i) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// suspect has members judged once more, by live reads, whose node is about to
// go. Under the rules of a bind nobody can be given them.
func (p *Pools) suspect(ctx context.Context, s *situation) error {
	stranded, err := p.view.Stranded(ctx, s.members)
	if err != nil {
		return fmt.Errorf("looking for members on nodes that leave: %w", err)
	}
	for _, member := range stranded {
		p.refused.Note(member, freshness.FaultMember)
	}
	return nil
}
