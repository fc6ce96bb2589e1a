// Package closing keeps the webhook configuration closed where a pool says enforce.
// A namespace's labels, which the API server selects webhooks by, do not show that.
package closing

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/freshbind/freshbind/internal/managed"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/webhooks"
)

// again is how often we check whether somebody has replaced the configuration.
const again = 10 * time.Second

// Controller closes the configuration, on the leader.
type Controller struct {
	// pools are read from a cache, the configuration is not.
	pools, live client.Reader
	client      client.Writer
	kind        schema.GroupVersionKind
}

// Setup adds the controller of this configuration to the manager. caches have the pools.
func Setup(mgr manager.Manager, caches cache.Cache, pools schema.GroupVersionKind, name string) error {
	c := &Controller{pools: caches, live: mgr.GetAPIReader(), client: mgr.GetClient(), kind: pools}
	watched := &unstructured.Unstructured{}
	watched.SetGroupVersionKind(pools)
	configuration := reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	one := func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{configuration} }
	// Once without any pool: the last ones may have gone while nobody looked.
	first := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		q.Add(configuration)
		return nil
	})
	err := managed.Controller(mgr, "closing", controller.Options{}).
		WatchesRawSource(source.Kind(caches, client.Object(watched), handler.EnqueueRequestsFromMapFunc(one), predicate.Predicate(saysOtherwise))).
		WatchesRawSource(first).
		Complete(c)
	if err != nil {
		return fmt.Errorf("setting up the controller of the webhook configuration: %w", err)
	}
	return nil
}

// saysOtherwise: what a pool says of its enforcement has changed.
var saysOtherwise = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.GetAnnotations()[settings.EnforcementKey] != e.ObjectNew.GetAnnotations()[settings.EnforcementKey]
}}

// Reconcile writes the configuration when it is not as the pools say.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	namespaces, err := c.enforcing(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	var stored admissionregistrationv1.ValidatingWebhookConfiguration
	if err := c.live.Get(ctx, req.NamespacedName, &stored); err != nil {
		// Without it nothing is asked at all, which the self-test tells.
		return reconcile.Result{RequeueAfter: again}, client.IgnoreNotFound(err)
	}
	wanted := stored.DeepCopy()
	webhooks.ClosePools(wanted, namespaces)
	if !apiequality.Semantic.DeepEqual(stored.Webhooks, wanted.Webhooks) {
		// The webhooks are one list to a merge patch: somebody else's must not get lost.
		if err := c.client.Patch(ctx, wanted, client.MergeFromWithOptions(&stored, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, fmt.Errorf("closing the webhooks of %d namespaces with pools that enforce: %w", len(namespaces), err)
		}
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// enforcing are the namespaces of pools that say enforce.
func (c *Controller) enforcing(ctx context.Context) ([]string, error) {
	var pools unstructured.UnstructuredList
	pools.SetGroupVersionKind(c.kind.GroupVersion().WithKind(c.kind.Kind + "List"))
	if err := c.pools.List(ctx, &pools); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	var out []string
	for i := range pools.Items {
		if settings.Pool(pools.Items[i].GetAnnotations()).Enforces() {
			out = append(out, pools.Items[i].GetNamespace())
		}
	}
	return out, nil
}
