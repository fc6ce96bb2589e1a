package fakekruise

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Options are what a part is started with.
type Options struct {
	// Pace divides how long everybody waits; 0 means 1, upstream's own.
	Pace float64
	// WithoutRolling leaves old members where they are, as v0.1 and v0.2 do.
	WithoutRolling bool
	// Remembers is how long whoever takes members passes over one that they got a conflict for
	// and that nothing has changed since; nil means as long as upstream does, a minute.
	Remembers func() time.Duration
}

func (o Options) remembers() time.Duration {
	if o.Remembers == nil {
		return o.wait(CacheTimeout)
	}
	return o.wait(o.Remembers())
}

// wait is how long something takes at this pace.
func (o Options) wait(d time.Duration) time.Duration {
	if o.Pace <= 0 {
		return d
	}
	return time.Duration(float64(d) / o.Pace)
}

const (
	byPick       = "pick"
	byController = "controller"
	byOwner      = "owner"
)

// view is a client, and caches that it fills.
type view struct {
	options Options
	client  dynamic.Interface
	factory dynamicinformer.DynamicSharedInformerFactory
	caches  map[schema.GroupVersionResource]cache.SharedIndexInformer
}

func newView(cfg *rest.Config, options Options, watched ...schema.GroupVersionResource) (*view, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return viewOf(client, options, watched...)
}

func viewOf(client dynamic.Interface, options Options, watched ...schema.GroupVersionResource) (*view, error) {
	v := &view{options: options, client: client, factory: dynamicinformer.NewDynamicSharedInformerFactory(client, 0), caches: map[schema.GroupVersionResource]cache.SharedIndexInformer{}}
	for _, r := range watched {
		v.caches[r] = v.factory.ForResource(r).Informer()
		if err := v.caches[r].SetTransform(typed); err != nil {
			return nil, fmt.Errorf("read %s as upstream's types: %w", r.Resource, err)
		}
	}
	return v, v.caches[Sandboxes].AddIndexers(cache.Indexers{
		byPick: func(obj any) ([]string, error) {
			u := unstructuredOf(obj)
			template := u.GetLabels()[labelTemplate]
			if template == "" {
				template = u.GetLabels()[labelPool]
			}
			return []string{u.GetNamespace() + "/" + template}, nil
		},
		byController: func(obj any) ([]string, error) {
			if ref := metav1.GetControllerOfNoCopy(unstructuredOf(obj)); ref != nil {
				return []string{string(ref.UID)}, nil
			}
			return nil, nil
		},
		byOwner: func(obj any) ([]string, error) { return []string{unstructuredOf(obj).GetAnnotations()[keyOwner]}, nil },
	})
}

// start fills the caches.
func (v *view) start(ctx context.Context) error {
	v.factory.Start(ctx.Done())
	for r, synced := range v.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("cache of %s is not filled: %w", r.Resource, context.Cause(ctx))
		}
	}
	return nil
}

// get returns a copy of an object as the cache shows it; nil where it does not.
func (v *view) get(r schema.GroupVersionResource, key string) *unstructured.Unstructured {
	obj, found, err := v.caches[r].GetStore().GetByKey(key)
	if err != nil || !found {
		return nil
	}
	return unstructuredOf(obj).DeepCopy()
}

// boxes returns those of an index, in no order. They are the cache's own.
func (v *view) boxes(index, value string) []*unstructured.Unstructured {
	objs, err := v.caches[Sandboxes].GetIndexer().ByIndex(index, value)
	if err != nil {
		return nil
	}
	out := make([]*unstructured.Unstructured, 0, len(objs))
	for _, obj := range objs {
		out = append(out, unstructuredOf(obj))
	}
	return out
}

func (v *view) in(r schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	return v.client.Resource(r).Namespace(namespace)
}

// changed calls f with the keys of what changes; old is nil for what is new.
func (v *view) changed(r schema.GroupVersionResource, f func(old, obj *unstructured.Unstructured)) error {
	_, err := v.caches[r].AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f(nil, unstructuredOf(obj)) },
		UpdateFunc: func(old, obj any) { f(unstructuredOf(old), unstructuredOf(obj)) },
		DeleteFunc: func(obj any) { f(nil, unstructuredOf(obj)) },
	})
	return err
}

func unstructuredOf(obj any) *unstructured.Unstructured {
	if gone, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = gone.Obj
	}
	u, _ := obj.(*unstructured.Unstructured)
	return u
}

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// queue works off keys, one after the other, as controller-runtime does: again after an
// error with back-off, or after as long as reconcile asks for.
type queue struct {
	workqueue.TypedRateLimitingInterface[string]
}

func newQueue() queue {
	return queue{workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 1000*time.Second))}
}

func (q queue) work(ctx context.Context, workers int, reconcile func(ctx context.Context, key string) (again time.Duration, err error)) {
	context.AfterFunc(ctx, q.ShutDown)
	for range workers {
		go func() {
			for {
				key, ended := q.Get()
				if ended {
					return
				}
				again, err := reconcile(ctx, key)
				if err != nil {
					q.AddRateLimited(key)
				} else {
					q.Forget(key)
				}
				if again > 0 {
					q.AddAfter(key, again)
				}
				q.Done(key)
			}
		}()
	}
}

// typed leaves of a Pod's template what its Go type knows, as caches of typed objects do: the
// schemas of the kinds know nothing of templates, and keep whatever somebody wrote.
func typed(in any) (any, error) {
	u, _ := in.(*unstructured.Unstructured)
	if u == nil {
		return in, nil
	}
	spec, _ := u.Object["spec"].(map[string]any)
	raw, has := spec["template"].(map[string]any)
	if !has {
		return in, nil
	}
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &template); err != nil {
		return nil, fmt.Errorf("read the template of %s: %w", u.GetName(), err)
	}
	plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
	if err != nil {
		return nil, fmt.Errorf("write the template of %s: %w", u.GetName(), err)
	}
	u = u.DeepCopy()
	return u, unstructured.SetNestedMap(u.Object, plain, "spec", "template")
}
