package members

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

// pageSize is how many objects are in memory at once, in full, while they are
// listed.
const pageSize = 250

// item is a reduced object on its way through a list.
type item[T any] struct{ object *T }

func (i *item[T]) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (i *item[T]) DeepCopyObject() runtime.Object   { return i }

// Feed fills a Store with objects of one kind, of one namespace, "" for all. It is
// what a Reflector tells what it lists and sees.
type Feed[T any] struct {
	table     *table[T]
	namespace string
	// synced is called when it was listed.
	synced func()
}

var _ toolscache.TransformingStore = &Feed[Member]{}

// Add keeps an object that the watch has seen for the first time.
func (f *Feed[T]) Add(obj any) error { return f.table.put(obj) }

// Update keeps a later version in place of the one before.
func (f *Feed[T]) Update(obj any) error { return f.table.put(obj) }

// Resync has nothing to do: nobody is told twice.
func (f *Feed[T]) Resync() error { return nil }

// Delete drops an object, by its name.
func (f *Feed[T]) Delete(obj any) error {
	gone, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("caching members: %w", err)
	}
	f.table.remove(types.NamespacedName{Namespace: gone.GetNamespace(), Name: gone.GetName()})
	return nil
}

// Replace takes a list for all that there is in the namespace.
func (f *Feed[T]) Replace(objs []any, _ string) error {
	if err := f.table.replace(f.namespace, objs); err != nil {
		return err
	}
	f.synced()
	return nil
}

// Transformer has objects reduced as soon as each is read from a list.
func (f *Feed[T]) Transformer() toolscache.TransformFunc {
	return func(obj any) (any, error) {
		reduced, err := f.table.listed(obj)
		if err != nil {
			return nil, err
		}
		return &item[T]{reduced}, nil
	}
}

// run lists and watches until ctx ends.
func (f *Feed[T]) run(ctx context.Context, client dynamic.NamespaceableResourceInterface, kind schema.GroupVersionKind, selector string) {
	resource := client.Namespace(f.namespace)
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return f.list(ctx, resource, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return resource.Watch(ctx, options)
		},
	}
	expected := &unstructured.Unstructured{}
	expected.SetGroupVersionKind(kind)
	toolscache.NewReflectorWithOptions(lw, expected, f, toolscache.ReflectorOptions{Name: "members"}).RunWithContext(ctx)
}

// list reduces page by page. It asks etcd, never the memory of an API server,
// which may be older than what was seen before (kubernetes#59848).
func (f *Feed[T]) list(ctx context.Context, resource dynamic.ResourceInterface, options metav1.ListOptions) (runtime.Object, error) {
	out := &metainternalversion.List{}
	options.ResourceVersion, options.ResourceVersionMatch, options.Limit = "", "", 0
	transform := f.Transformer()
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, err := resource.List(ctx, options)
		if err == nil {
			out.ResourceVersion = page.GetResourceVersion()
		}
		return page, err
	})
	pages.PageSize, pages.PageBufferSize = pageSize, 1
	err := pages.EachListItem(ctx, options, func(obj runtime.Object) error {
		reduced, err := transform(obj)
		if err == nil {
			out.Items = append(out.Items, reduced.(runtime.Object))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing members: %w", err)
	}
	return out, nil
}
