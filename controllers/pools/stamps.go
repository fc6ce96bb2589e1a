package pools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	// stampsAtOnce bounds how many members of a pool are stamped in one step, so
	// that a store full of members from before Freshbind is not written to all at
	// once. A next leader goes on with what has no stamp yet.
	stampsAtOnce = 50
	// nextStamps is the pause between two steps.
	nextStamps = 250 * time.Millisecond
)

// stamp names the revision on members, and on their Pods, that came before the
// webhook did, or before their pool asked to be enforced. It returns when to come
// back, 0 for never.
func (p *Controller) stamp(ctx context.Context, s *poolState) (time.Duration, error) {
	var missing []int
	enforces := s.enforces()
	for i := range s.members {
		member := &s.members[i]
		lacks := !member.stamped || enforces && !member.enforced
		if lacks && member.revision.Value() != "" && !s.Members[i].Leaving {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return 0, nil
	}
	again := time.Duration(0)
	if len(missing) > stampsAtOnce {
		missing, again = missing[:stampsAtOnce], nextStamps
	}
	if may, err := p.mayWrite(ctx, s); err != nil || !may {
		return 0, err
	}
	var late atomic.Bool
	err, _ := slowStart(ctx, len(missing), func(ctx context.Context, k int) error {
		i := missing[k]
		// The member's comes last: one that has it is not looked at again, whoever
		// leads next.
		done, err := p.stampPod(ctx, s, i)
		if err != nil || !done {
			late.Store(late.Load() || !done)
			return err
		}
		_, err = p.label(ctx, s, p.view.kinds.Sandboxes, s.members[i].Member, s.members[i].revision.Value())
		return err
	})
	if late.Load() {
		again = nextStamps
	}
	return again, err
}

// stampPod: what was never written to since it was born has a Pod like itself.
// False when the Pod was written to meanwhile.
func (p *Controller) stampPod(ctx context.Context, s *poolState, i int) (done bool, err error) {
	if s.Members[i].Edited {
		return true, nil
	}
	pod := s.members[i].Pod
	if pod == nil || pod.Stamp() != "" {
		return true, nil
	}
	return p.label(ctx, s, podKind, pod, s.members[i].revision.Value())
}

// enforces: the pool itself asks to be enforced.
func (s *poolState) enforces() bool {
	return settings.Pool(s.pool.GetAnnotations()).Enforces()
}

// version is one version of an object.
type version interface {
	identified
	GetResourceVersion() string
}

// label writes the stamp, and what the pool asked for.
func (p *Controller) label(
	ctx context.Context, s *poolState, kind schema.GroupVersionKind, obj version, revision string,
) (done bool, err error) {
	labels := map[string]any{settings.StampKey: revision}
	if s.enforces() {
		labels[settings.EnforcementKey] = string(settings.Enforce)
	}
	return p.mark(ctx, kind, obj, labels)
}

// loosen takes off members, and off their Pods, that their pool asked to be
// enforced, when nothing is enforced for it any more: policies hold by that.
func (p *Controller) loosen(ctx context.Context, pool *unstructured.Unstructured) (reconcile.Result, error) {
	marked := slices.DeleteFunc(p.view.members.OfPool(pool.GetUID()), func(m members.WithPod) bool { return m.Labels[settings.EnforcementKey] == "" })
	if len(marked) == 0 {
		return reconcile.Result{}, nil
	}
	// Caches may show the mode of before.
	stored, err := p.platform.Get(ctx, p.kinds.Pool.GroupResource(), pool.GetNamespace(), pool.GetName())
	if err != nil || stored == nil || stored.GetUID() != pool.GetUID() {
		return reconcile.Result{}, err
	}
	if act, err := p.actsOn(ctx, stored); err != nil || act {
		return reconcile.Result{}, err
	}
	var again time.Duration
	if len(marked) > stampsAtOnce {
		marked, again = marked[:stampsAtOnce], nextStamps
	}
	off := map[string]any{settings.EnforcementKey: nil}
	err, _ = slowStart(ctx, len(marked), func(ctx context.Context, i int) error {
		// The member's comes last, as of stamps.
		if pod := marked[i].Pod; pod != nil {
			if done, err := p.mark(ctx, podKind, pod, off); err != nil || !done {
				return err
			}
		}
		_, err := p.mark(ctx, p.view.kinds.Sandboxes, marked[i].Member, off)
		return err
	})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("taking enforcement off members of pool %s/%s: %w", pool.GetNamespace(), pool.GetName(), err)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// mark writes labels of ours; false when the object is another one by now.
func (p *Controller) mark(ctx context.Context, kind schema.GroupVersionKind, obj version, labels map[string]any) (done bool, err error) {
	if !p.leads() {
		return false, errNotLeading
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), "labels": labels,
	}})
	if err != nil {
		return false, fmt.Errorf("marshalling labels: %w", err)
	}
	switch err := p.client.Patch(ctx, namedAs(kind, obj.GetNamespace(), obj.GetName()), client.RawPatch(types.MergePatchType, patch)); {
	case err == nil, apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsConflict(err):
		return false, nil
	default:
		return false, fmt.Errorf("labelling %s %s: %w", kind.Kind, obj.GetName(), err)
	}
}
