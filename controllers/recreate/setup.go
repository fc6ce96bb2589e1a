package recreate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// gather is how long the events of one pool's members are gathered before they
// are looked at together.
const gather = 50 * time.Millisecond

// poolWorkers is how many pools are brought a step further at once.
const poolWorkers = 8

// PoolsOptions configure the controller of pools.
type PoolsOptions struct {
	Platform Platform
	Enforced Enforced
	// Leads reports whether this process is the leader for certain; it is asked
	// before each write to a member.
	Leads   func() bool
	Refused *Refused
	Pods    *Pods
	Kinds   PoolKinds
	Metrics *Metrics
	// Strays is the scheduler whose Pods are not to be left behind; "" for none.
	Strays string
	// Budget bounds the members in replacement at any moment, over all pools.
	Budget int
	// Namespaces are the only ones to look at; all when empty.
	Namespaces map[string]cache.Config
}

// SetupPools adds the controller to the manager, and returns a forecast from what
// it sees.
func SetupPools(mgr manager.Manager, o PoolsOptions) (*Forecast, error) {
	view, informers, err := NewView(mgr, o.Kinds, o.Namespaces)
	if err != nil {
		return nil, err
	}
	p := &Pools{
		platform: o.Platform, enforced: o.Enforced, leads: o.Leads, view: view, client: mgr.GetClient(), refused: o.Refused, pods: o.Pods,
		budget: NewBudget(o.Budget, clock.RealClock{}), events: mgr.GetEventRecorder("freshbind"),
		metrics: o.Metrics, clock: clock.RealClock{}, strays: o.Strays, memory: map[types.NamespacedName]*memory{},
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("pools").
		WithOptions(controller.Options{MaxConcurrentReconciles: poolWorkers})
	for _, watch := range []struct {
		kind  *unstructured.Unstructured
		pools func(context.Context, client.Object) []types.NamespacedName
	}{
		{object(o.Kinds.Pools), itself},
		{object(o.Kinds.Templates), view.poolsOfTemplate},
		{object(o.Kinds.Sandboxes), poolOfMember},
		{object(podKind), view.poolOfPod},
		{object(nodeKind), view.poolsOnNode},
	} {
		b = b.WatchesRawSource(source.Kind(informers, client.Object(watch.kind), gathered(watch.pools)))
	}
	b = b.WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&corev1.Namespace{}), gathered(view.poolsIn),
		predicate.LabelChangedPredicate{}))
	if err := b.Complete(p); err != nil {
		return nil, fmt.Errorf("setting up the controller of pools: %w", err)
	}
	forecast := newForecast(view, o.Platform, o.Enforced, mgr.GetCache(), clock.RealClock{})
	return forecast, forecast.watch(context.Background(), mgr.GetCache())
}

// gathered asks for the pools that an object has to do with, now or before.
func gathered(pools func(context.Context, client.Object) []types.NamespacedName) handler.EventHandler {
	add := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], objs ...client.Object) {
		for _, obj := range objs {
			for _, key := range pools(ctx, obj) {
				q.AddAfter(reconcile.Request{NamespacedName: key}, gather)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, q, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, q, e.Object)
		},
	}
}

func itself(_ context.Context, obj client.Object) []types.NamespacedName {
	return []types.NamespacedName{client.ObjectKeyFromObject(obj)}
}

func poolOfMember(_ context.Context, obj client.Object) []types.NamespacedName {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	if name, uid := agentsandbox.PoolOf(u); uid != "" {
		return []types.NamespacedName{{Namespace: u.GetNamespace(), Name: name}}
	}
	return nil
}

// poolsIn are all pools of a namespace, whose mode has changed.
func (v *View) poolsIn(ctx context.Context, namespace client.Object) []types.NamespacedName {
	return v.poolsWhere(ctx, namespace.GetName(), func(*unstructured.Unstructured) bool { return true })
}

func (v *View) poolsOfTemplate(ctx context.Context, template client.Object) []types.NamespacedName {
	return v.poolsWhere(ctx, template.GetNamespace(), func(pool *unstructured.Unstructured) bool {
		return agentsandbox.TemplateOf(pool) == template.GetName()
	})
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

func (v *View) poolOfPod(ctx context.Context, obj client.Object) []types.NamespacedName {
	pod, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	name := agentsandbox.PodSandbox(pod)
	if name == "" {
		return nil
	}
	member, err := v.get(ctx, v.kinds.Sandboxes, types.NamespacedName{Namespace: pod.GetNamespace(), Name: name})
	if err != nil || member == nil {
		return nil
	}
	return poolOfMember(ctx, member)
}

// poolsOnNode are all pools with a member on a node that is gone or about to go.
// Other changes of nodes, of which there are many, concern nobody. Bare Pods are
// in no cache, so that every pool may have some there.
func (v *View) poolsOnNode(ctx context.Context, obj client.Object) []types.NamespacedName {
	node, err := v.get(ctx, nodeKind, types.NamespacedName{Name: obj.GetName()})
	if err != nil || agentsandbox.Leaving(node) == "" {
		return nil
	}
	if v.kinds.Pools.Version == agentsandbox.BarePodVersion {
		return v.poolsWhere(ctx, "", func(*unstructured.Unstructured) bool { return true })
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listOf(podKind))
	if err := v.cache.List(ctx, list, client.MatchingFields{byNode: obj.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var out []types.NamespacedName
	for i := range list.Items {
		out = append(out, v.poolOfPod(ctx, &list.Items[i])...)
	}
	return out
}
