package pools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
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

// PodRevisions finds the revision that a Pod is built from, by its own content.
type PodRevisions interface {
	PodRevision(ctx context.Context, pod *unstructured.Unstructured) (platform.Stamp, error)
}

// podResource is that of Pods.
var podResource = schema.GroupResource{Resource: "pods"}

// stamp names the revision on members, and on their Pods, that came before the
// webhook did, that it had no answer for in time, or whose pool did not ask to be
// enforced then. It returns when to come back, 0 for never.
func (p *Controller) stamp(ctx context.Context, m *poolRecord, s *poolState) (time.Duration, error) {
	missing, err := p.missing(ctx, m, s)
	if err != nil || len(missing) == 0 {
		return m.unstamped.next(s.Now), err
	}
	again := time.Duration(0)
	if len(missing) > stampsAtOnce {
		missing, again = missing[:stampsAtOnce], nextStamps
	}
	if may, err := p.mayWrite(ctx, s); err != nil || !may {
		return 0, err
	}
	var mu sync.Mutex
	err, _ = slowStart(ctx, len(missing), func(ctx context.Context, k int) error {
		of := missing[k]
		// Its own comes first: what a Pod is built from is read off that.
		if of.member != nil {
			done, err := p.label(ctx, s, p.view.kinds.Sandboxes, of.member.Member, of.member.revision.Value())
			if err != nil || !done {
				return err
			}
		}
		if of.pod == nil {
			return nil
		}
		named, done, err := p.stampPod(ctx, s, of.pod)
		mu.Lock()
		defer mu.Unlock()
		if !named {
			m.unstamped.note(of.uid, s.Now)
		}
		if !done {
			again = nextStamps
		}
		return err
	})
	return sooner(again, m.unstamped.next(s.Now)), err
}

// unstamped is a member that lacks a stamp, or whose Pod does.
type unstamped struct {
	uid types.UID
	// member is nil where only its Pod lacks one, or it is a Pod itself; pod where that has
	// one, or there is none.
	member *entry
	pod    identified
}

// missing are the members to be stamped now, or whose Pods are. What a webhook could not
// name, because it takes too much or because of what is stored, cannot be named here either:
// such a Pod is left alone for longer each time.
func (p *Controller) missing(ctx context.Context, m *poolRecord, s *poolState) ([]unstamped, error) {
	out := s.lacking(m.leaving)
	if s.bare && len(s.members) == 0 {
		pods, err := p.view.BarePods(ctx, s.pool, withoutStamp)
		if err != nil {
			return nil, err
		}
		for _, pod := range pods {
			out = append(out, unstamped{uid: pod.GetUID(), pod: pod})
		}
	}
	if len(m.unstamped) == 0 {
		return out, nil
	}
	lacking := sets.New[types.UID]()
	for _, of := range out {
		lacking.Insert(of.uid)
	}
	keepPresent(m.unstamped, lacking)
	return slices.DeleteFunc(out, func(of unstamped) bool {
		_, wait := m.unstamped.failed(of.uid, s.Now)
		return wait && of.member == nil
	}), nil
}

// lacking are the members that lack a stamp, or whose Pods do, as the caches show them.
func (s *poolState) lacking(leaving map[types.UID]bool) (out []unstamped) {
	enforces := s.enforces()
	for i := range s.members {
		member := &s.members[i]
		if s.Members[i].Leaving || leaving[member.UID] || member.revision.Value() == "" {
			continue
		}
		of := unstamped{uid: member.UID}
		if !member.stamped || enforces && !member.enforced {
			of.member = member
		}
		if member.podLacksStamp {
			of.pod = member.Pod
		}
		if of.member != nil || of.pod != nil {
			out = append(out, of)
		}
	}
	return out
}

// withoutStamp selects what has none.
var withoutStamp = func() labels.Requirement {
	r, err := labels.NewRequirement(settings.StampKey, selection.DoesNotExist, nil)
	utilruntime.Must(err)
	return *r
}()

// stampPod names what a Pod really is built from: webhooks of others, or somebody who wrote
// to it, may have made it differ from its member. It is not named where it could not be
// found out, and not done where the Pod was written to meanwhile.
func (p *Controller) stampPod(ctx context.Context, s *poolState, seen identified) (named, done bool, err error) {
	pod, err := p.platform.Get(ctx, podResource, seen.GetNamespace(), seen.GetName())
	if err != nil {
		return false, true, fmt.Errorf("reading pod %s: %w", seen.GetName(), err)
	}
	if pod == nil || pod.GetUID() != seen.GetUID() || pod.GetDeletionTimestamp() != nil || pod.GetLabels()[settings.StampKey] != "" {
		// Caches are going to show that.
		return true, true, nil
	}
	stamp, err := p.platform.PodRevision(ctx, pod)
	if err != nil {
		return false, true, fmt.Errorf("naming the revision of pod %s: %w", seen.GetName(), err)
	}
	if stamp.Hash == "" {
		return false, true, nil
	}
	done, err = p.label(ctx, s, podKind, pod, stamp.Hash)
	return err == nil, done, err
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
