package pools

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/internal/eventnote"
	"github.com/freshbind/freshbind/internal/managed"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/platform"
)

// batchPeriod is how long the events of one pool's members are gathered before they
// are looked at together.
const batchPeriod = 50 * time.Millisecond

// urgentRate is how many pools a second, of all tenants, are looked at without that delay,
// because their template was edited: claims that come right after it try the old members
// until those are hidden or gone.
const urgentRate = 20

// poolWorkers is how many pools are brought a step further at once.
const poolWorkers = 8

// Options configure the controller of pools.
type Options struct {
	Platform Platform
	// Kinds are what Platform reads, Visibility hides and shows members.
	Kinds      platform.Kinds
	Visibility platform.Visibility
	// Inspector judges members for dispositions, BarePods those that are Pods; nil for a
	// platform without any.
	Inspector platform.Inspector
	BarePods  BarePodInspector
	// Live is for members that dispositions find in no cache.
	Live Live
	// Enforced answers from the cache, EnforcedNow as it is stored now.
	Enforced, EnforcedNow Enforced
	// Leads reports whether this process is the leader for certain; it is asked
	// before each write to a member.
	Leads   func() bool
	Refused *Refused
	// Pods is nil for a platform without bare Pods.
	Pods    *Pods
	View    *View
	Metrics *Metrics
	// FormerScheduler is the scheduler whose Pods are not to be left behind; "" for none.
	FormerScheduler string
	// Budget bounds the members in replacement at any moment, over all pools, and with
	// that how fast they are deleted.
	Budget int
}

// Setup adds the controller to the manager, and returns what it says of Pods
// that wait for a node.
func Setup(mgr manager.Manager, o Options) (*Dispositions, error) {
	view, turns := o.View, hints.New[reconcile.Request]()
	p := &Controller{
		platform: o.Platform, kinds: o.Kinds, visible: o.Visibility, enforced: o.Enforced, enforcedNow: o.EnforcedNow, leads: o.Leads, view: view, client: mgr.GetClient(), refused: o.Refused, pods: o.Pods,
		events:  eventnote.Recorder(mgr.GetEventRecorder("freshbind")),
		metrics: o.Metrics, clock: clock.RealClock{}, formerScheduler: o.FormerScheduler, records: map[types.NamespacedName]*poolRecord{},
		ready: map[types.UID]sets.Set[types.UID]{},
	}
	p.budget = budgetOf(o.Budget, p.clock, turns)
	b := managed.Controller(mgr, "pools", controller.Options{MaxConcurrentReconciles: poolWorkers})
	for _, watch := range view.watches() {
		b = b.WatchesRawSource(source.Kind(view.informers, client.Object(object(watch.kind)), enqueuePools(watch.pools, watch.urgent)))
	}
	b = b.WatchesRawSource(changes[members.Member]{view.store, view.store.HandleSandboxes, p.poolsOfMember}).
		WatchesRawSource(changes[members.Pod]{view.store, view.store.HandlePods, view.poolsOfPod})
	b = b.WatchesRawSource(source.TypedFunc[reconcile.Request](turns.Feed))
	b = b.WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&corev1.Namespace{}), enqueuePools(view.poolsIn, nil),
		predicate.LabelChangedPredicate{}))
	if err := b.Complete(p); err != nil {
		return nil, fmt.Errorf("setting up the controller of pools: %w", err)
	}
	dispositions := newDispositions(view, o, mgr.GetCache(), clock.RealClock{})
	return dispositions, dispositions.watch(context.Background(), mgr.GetCache())
}

// poolWatch is a kind whose objects have to do with pools; urgent is as enqueuePools takes
// it.
type poolWatch struct {
	kind   schema.GroupVersionKind
	pools  func(context.Context, client.Object) []types.NamespacedName
	urgent flowcontrol.PassiveRateLimiter
}

func (v *View) watches() []poolWatch {
	edits := flowcontrol.NewTokenBucketPassiveRateLimiter(urgentRate, urgentRate)
	out := []poolWatch{
		{v.kinds.Pools, enqueueSelf, nil},
		{v.kinds.Templates, v.poolsOfTemplate(""), edits},
		{nodeKind, v.poolsOnNode, nil},
	}
	if shared := v.kinds.SharedTemplates; !shared.Empty() {
		out = append(out, poolWatch{shared, v.poolsOfTemplate(shared.Kind), edits})
	}
	return out
}

// budgetOf is a budget of that size, at its pace, which has pools looked at by hints.
func budgetOf(size int, c clock.PassiveClock, turns hints.Queue[reconcile.Request]) *Budget {
	return NewBudget(size, PaceOf(size, c), func(pool types.NamespacedName, after time.Duration) {
		turns.Note(reconcile.Request{NamespacedName: pool}, after)
	})
}

// enqueuePools asks for the pools that an object has to do with, now or before: at once
// when its spec was edited, as often as urgent allows that (nil for never), and otherwise
// after batchPeriod.
func enqueuePools(pools func(context.Context, client.Object) []types.NamespacedName, urgent flowcontrol.PassiveRateLimiter) handler.EventHandler {
	add := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], edited bool, objs ...client.Object) {
		keys := sets.New[types.NamespacedName]()
		for _, obj := range objs {
			keys.Insert(pools(ctx, obj)...)
		}
		for key := range keys {
			after := batchPeriod
			if edited && urgent != nil && urgent.TryAccept() {
				after = 0
			}
			q.AddAfter(reconcile.Request{NamespacedName: key}, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, q, false, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, q, e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration(), e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, q, false, e.Object)
		},
	}
}

func enqueueSelf(_ context.Context, obj client.Object) []types.NamespacedName {
	return []types.NamespacedName{client.ObjectKeyFromObject(obj)}
}

// changes is a source of the pools that a change of what is kept of members has to
// do with.
type changes[T any] struct {
	store  *members.Cache
	handle func(members.Handler[T])
	pools  func(old, now *T) []types.NamespacedName
}

// Start has changes told from now on.
func (c changes[T]) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	c.handle(func(old, now *T) {
		if ctx.Err() != nil {
			return
		}
		for _, key := range c.pools(old, now) {
			q.AddAfter(reconcile.Request{NamespacedName: key}, batchPeriod)
		}
	})
	return nil
}

// WaitForSync waits until everything that there is was told.
func (c changes[T]) WaitForSync(ctx context.Context) error { return c.store.WaitForSync(ctx) }

// poolsOfMember is told of changes in the order in which the cache shows them.
func (p *Controller) poolsOfMember(old, now *members.Member) []types.NamespacedName {
	if now != nil && !now.ReadySince().IsZero() && (old == nil || old.ReadySince().IsZero()) {
		p.noteReady(now)
	}
	return poolsOfMember(old, now)
}

// poolsOfMember are those that have the member, now or before.
func poolsOfMember(old, now *members.Member) []types.NamespacedName {
	var out []types.NamespacedName
	for _, m := range []*members.Member{old, now} {
		if m == nil {
			continue
		}
		if name, uid := m.Pool(); uid != "" {
			key := types.NamespacedName{Namespace: m.GetNamespace(), Name: name}
			if !slices.Contains(out, key) {
				out = append(out, key)
			}
		}
	}
	return out
}

// poolsOfPod are those with the Pod's Sandbox among their members. Most of what
// happens to a Pod changes nothing that is looked at.
func (v *View) poolsOfPod(old, now *members.Pod) []types.NamespacedName {
	pod := now
	if pod == nil {
		pod = old
	}
	if old != nil && now != nil && now.SameButVersion(old) || pod.Sandbox() == "" {
		return nil
	}
	if m := v.member(pod.GetNamespace(), pod.Sandbox()); m != nil {
		return poolsOfMember(nil, m)
	}
	return nil
}

// poolsIn are all pools of a namespace, whose mode has changed.
func (v *View) poolsIn(ctx context.Context, namespace client.Object) []types.NamespacedName {
	return v.poolsWhere(ctx, namespace.GetName(), func(*unstructured.Unstructured) bool { return true })
}

// poolsOfTemplate finds those that refer to a template: one of the platform's own kind where
// the kind is "".
func (v *View) poolsOfTemplate(kind string) func(context.Context, client.Object) []types.NamespacedName {
	return func(ctx context.Context, template client.Object) []types.NamespacedName {
		return v.poolsWhere(ctx, template.GetNamespace(), func(pool *unstructured.Unstructured) bool {
			return v.objects.Pool(pool).RefersTo(kind, template.GetName())
		})
	}
}

// poolsWhere has no error to return: a cache that cannot be listed has not
// started, and delivers every pool when it does.
func (v *View) poolsWhere(ctx context.Context, namespace string, which func(*unstructured.Unstructured) bool) []types.NamespacedName {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listOf(v.kinds.Pools))
	if err := v.cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var out []types.NamespacedName
	for i := range list.Items {
		if which(&list.Items[i]) {
			out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return out
}

// poolsOnNode are all pools with a member on a node that is gone, or about to go or to
// be empty for its Pod. Other changes of nodes, of which there are many, concern nobody.
// Bare Pods are in no cache, so that every pool may have some there.
func (v *View) poolsOnNode(ctx context.Context, obj client.Object) []types.NamespacedName {
	stored, err := v.node(ctx, obj.GetName())
	if err != nil {
		return nil
	}
	node := placement.NodeState(stored)
	v.sawNode(obj.GetName(), node)
	leaves := node.Leaving(nil) != ""
	if !leaves && !node.IsCordoned(nil) {
		return nil
	}
	if leaves && v.hasBarePods(v.kinds.Pools) {
		return v.poolsWhere(ctx, "", func(*unstructured.Unstructured) bool { return true })
	}
	var out []types.NamespacedName
	for _, pod := range v.pods.PodsOn(obj.GetName()) {
		if pod.MustLeave(node) || pod.IsUnwelcome(node) {
			out = append(out, v.poolsOfPod(nil, pod)...)
		}
	}
	return out
}
