// Package waiting wakes claims that wait longer than they need to. The claim
// controller backs off exponentially, up to many minutes, while binds cannot be
// decided, or not in time, and stale cold starts not be repaired; nothing wakes it when
// they can be but an event on the claim itself.
package waiting

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/internal/managed"
	"github.com/freshbind/freshbind/internal/settings"
)

// retryAfter is how long what was undecided, or not repaired, is left to its own writer.
const retryAfter = time.Second

// sweeps are the pauses before each sweep over all claims. The first one can be
// too early: until the Service has this process among its endpoints, a woken
// claim fails as before.
var sweeps = []time.Duration{0, 2 * time.Second, 3 * time.Second}

// Enforced reports whether the namespace enforces, or any pool in it; where none does,
// Freshbind made no claim wait.
type Enforced func(ctx context.Context, namespace string) (bool, error)

// Waits reports whether a claim has nothing yet.
type Waits func(claim *unstructured.Unstructured) bool

// Claims wakes claims: all that wait, once this process serves its webhooks,
// and later each one that may get with its next try what it did not get with this one.
type Claims struct {
	client client.Client
	live   client.Reader
	kind   schema.GroupVersionKind
	// namespaces are those to look at; "" is all of them.
	namespaces []string
	waits      Waits
	enforced   Enforced
	serving    func(ctx context.Context) error
	hints      hints.Queue[reconcile.Request]
	now        func() time.Time
}

// Setup adds the controller of claims in these namespaces, in all for none, to the manager.
// serving blocks until the webhooks are served.
func Setup(mgr manager.Manager, kind schema.GroupVersionKind, namespaces []string, waits Waits, enforced Enforced, serving func(ctx context.Context) error) (*Claims, error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	c := &Claims{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), kind: kind, namespaces: namespaces, waits: waits, enforced: enforced, serving: serving,
		hints: hints.New[reconcile.Request](), now: time.Now,
	}
	err := managed.Controller(mgr, "waiting", controller.Options{NeedLeaderElection: ptr.To(false)}).
		WatchesRawSource(source.Func(c.feed)).
		Complete(c)
	if err != nil {
		return nil, fmt.Errorf("setting up the controller of waiting claims: %w", err)
	}
	return c, nil
}

// Note tells that the claim is to be tried again.
func (c *Claims) Note(namespace, name string) {
	c.hints.Note(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}, retryAfter)
}

func (c *Claims) feed(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for _, pause := range sweeps {
			if err := c.sweep(ctx, q, pause); err != nil && ctx.Err() == nil {
				logf.FromContext(ctx).Error(err, "Claims that waited for this process are left to their own backoff")
			}
		}
	}()
	return c.hints.Feed(ctx, q)
}

// sweep wakes all claims that wait, pause after the webhooks are served. It
// lists from etcd: a claim made a moment ago waits like the others. Namespaces take
// turns, so that none waits for the many claims of another.
func (c *Claims) sweep(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], pause time.Duration) error {
	if err := c.serving(ctx); err != nil {
		return fmt.Errorf("waiting for the webhooks: %w", err)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
	}
	all, err := c.listWaiting(ctx)
	for i := 0; len(all) > 0; i++ {
		for namespace, claims := range all {
			if q.Add(claims[i]); i == len(claims)-1 {
				delete(all, namespace)
			}
		}
	}
	return err
}

// pageSize bounds how many claims are in memory at once: one can have more than a MiB.
const pageSize = 50

// listWaiting returns the claims that wait, by namespace: with an error those that were
// found before it.
func (c *Claims) listWaiting(ctx context.Context) (map[string][]reconcile.Request, error) {
	all := map[string][]reconcile.Request{}
	for _, namespace := range c.namespaces {
		p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			page := &unstructured.UnstructuredList{}
			page.SetGroupVersionKind(c.kind)
			err := c.live.List(ctx, page, &client.ListOptions{Namespace: namespace, Limit: o.Limit, Continue: o.Continue})
			return page, err
		})
		p.PageSize, p.PageBufferSize, p.FullListIfExpired = pageSize, 0, false
		err := p.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
			if claim, ok := obj.(*unstructured.Unstructured); ok && c.waiting(claim) {
				of := claim.GetNamespace()
				all[of] = append(all[of], reconcile.Request{NamespacedName: client.ObjectKeyFromObject(claim)})
			}
			return nil
		})
		if err != nil {
			return all, fmt.Errorf("listing claims: %w", err)
		}
	}
	return all, nil
}

// waiting reports whether a claim is to be woken.
func (c *Claims) waiting(claim *unstructured.Unstructured) bool {
	return claim.GetDeletionTimestamp() == nil && c.waits(claim)
}

// Reconcile touches one claim, if it still waits.
func (c *Claims) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	enforced, err := c.enforced(ctx, req.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	claim := &unstructured.Unstructured{}
	claim.SetGroupVersionKind(c.kind)
	if err := c.live.Get(ctx, req.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !enforced || !c.waiting(claim) {
		return reconcile.Result{}, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         claim.GetUID(),
		"annotations": map[string]any{settings.RequeuedAtKey: c.now().UTC().Format(time.RFC3339Nano)},
	}})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("marshalling the annotation: %w", err)
	}
	err = c.client.Patch(ctx, claim, client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("requeuing claim %s: %w", req, err)
	}
	logf.FromContext(ctx).V(2).Info("Requeued claim")
	return reconcile.Result{}, nil
}
