// Package fakeupstream plays the pool and claim controllers of agent-sandbox releases
// that no Go module gives: v0.3.10 and v0.5.0. It works from caches, which are as
// late as its connection makes them, sends the writes that those releases send to
// make and take members, in their order, and goes on after an error as they do.
//
// It has none of their other work (network policies, traces, metrics, expiry),
// and is more patient in one thing: it waits until it has seen the members it
// made before it makes more. Sandboxes get their Pods from the unmodified Sandbox
// controller of the nearest release that can be built.
package fakeupstream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

// Style is how a release takes a member.
type Style string

const (
	// OneWrite (v0.3.10): one PUT of the Sandbox with its resourceVersion.
	OneWrite Style = "v0.3.10"
	// LockFree (v0.5.0): the claim names the member, then a merge PATCH of the
	// Sandbox without resourceVersion.
	LockFree Style = "v0.5.0"
)

// Version is the API version that the release writes.
func (s Style) Version() string {
	if s == OneWrite {
		return builders.V1Alpha1
	}
	return builders.V1Beta1
}

// Nearest is the release, of those that can be built, with the same API.
func (s Style) Nearest() string {
	if s == OneWrite {
		return "v0.4.6"
	}
	return "v0.5.5"
}

// workers is how many claims are served at once.
func (s Style) workers() int {
	if s == OneWrite {
		return 1
	}
	return 50
}

// Controller serves the pools and claims of one namespace.
type Controller struct {
	client    dynamic.Interface
	namespace string
	style     Style

	sandboxes, claims, templates, pools collection

	claimQueue, poolQueue workqueue.TypedRateLimitingInterface[string]
	// offered are the members that v0.5.0 keeps in memory.
	offered offered

	mu sync.Mutex
	// unseen are the members that were made and have not shown up yet.
	unseen map[string]string
}

// Start begins to serve a namespace, with caches filled through cfg, until ctx
// ends.
func Start(ctx context.Context, cfg *rest.Config, style Style, namespace string) (*Controller, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("start stand-in for %s: %w", style, err)
	}
	c := &Controller{
		client: client, namespace: namespace, style: style,
		claimQueue: newQueue(), poolQueue: newQueue(), unseen: map[string]string{},
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	for _, watched := range []struct {
		into     *collection
		resource schema.GroupResource
		changed  func(old, obj *unstructured.Unstructured)
	}{
		{&c.templates, upstream.SandboxTemplates, c.templateChanged},
		{&c.pools, upstream.SandboxWarmPools, c.poolChanged},
		{&c.claims, upstream.SandboxClaims, c.claimChanged},
		{&c.sandboxes, upstream.Sandboxes, c.sandboxChanged},
	} {
		informer := factory.ForResource(watched.resource.WithVersion(style.Version()))
		*watched.into = collection{informer.Lister().ByNamespace(namespace)}
		if _, err := informer.Informer().AddEventHandler(handler(watched.changed)); err != nil {
			return nil, fmt.Errorf("start stand-in for %s: watch %s: %w", style, watched.resource, err)
		}
	}
	factory.Start(ctx.Done())
	for resource, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("start stand-in for %s: cache of %s is not filled: %w", style, resource.Resource, context.Cause(ctx))
		}
	}
	context.AfterFunc(ctx, func() { c.claimQueue.ShutDown(); c.poolQueue.ShutDown() })
	go work(ctx, c.poolQueue, c.reconcilePool)
	for range style.workers() {
		go work(ctx, c.claimQueue, c.reconcileClaim)
	}
	return c, nil
}

// newQueue backs off as controller-runtime's default does: 5 ms, doubled with
// every failure.
func newQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 1000*time.Second))
}

func work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], reconcile func(context.Context, string) error) {
	for {
		name, ended := queue.Get()
		if ended {
			return
		}
		if err := reconcile(ctx, name); err != nil {
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// handler tells of a change; old is nil for what is new, obj for what is gone.
func handler(changed func(old, obj *unstructured.Unstructured)) cache.ResourceEventHandlerFuncs {
	of := func(obj any) *unstructured.Unstructured {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		u, _ := obj.(*unstructured.Unstructured)
		return u
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { changed(nil, of(obj)) },
		UpdateFunc: func(old, obj any) { changed(of(old), of(obj)) },
		DeleteFunc: func(obj any) { changed(of(obj), nil) },
	}
}

func (c *Controller) resource(r schema.GroupResource) dynamic.ResourceInterface {
	return c.client.Resource(r.WithVersion(c.style.Version())).Namespace(c.namespace)
}
