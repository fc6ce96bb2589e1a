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

// reflector fills a table with the objects of one namespace, "" for all.
type reflector[T any] struct {
	table     *table[T]
	namespace string
	// synced is called when it was listed.
	synced func()
}

var _ toolscache.TransformingStore = &reflector[Member]{}

func (r *reflector[T]) Add(obj any) error    { return r.table.put(obj) }
func (r *reflector[T]) Update(obj any) error { return r.table.put(obj) }
func (r *reflector[T]) Resync() error        { return nil }

func (r *reflector[T]) Delete(obj any) error {
	gone, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("caching members: %w", err)
	}
	r.table.remove(types.NamespacedName{Namespace: gone.GetNamespace(), Name: gone.GetName()})
	return nil
}

func (r *reflector[T]) Replace(objs []any, _ string) error {
	if err := r.table.replace(r.namespace, objs); err != nil {
		return err
	}
	r.synced()
	return nil
}

// Transformer has objects reduced as soon as each is read.
func (r *reflector[T]) Transformer() toolscache.TransformFunc {
	return func(obj any) (any, error) {
		reduced, err := r.table.reduced(obj)
		if err != nil {
			return nil, err
		}
		return &item[T]{reduced}, nil
	}
}

// run lists and watches until ctx ends.
func (r *reflector[T]) run(ctx context.Context, client dynamic.NamespaceableResourceInterface, kind schema.GroupVersionKind, selector string) {
	resource := client.Namespace(r.namespace)
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return r.list(ctx, resource, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return resource.Watch(ctx, options)
		},
	}
	expected := &unstructured.Unstructured{}
	expected.SetGroupVersionKind(kind)
	toolscache.NewReflectorWithOptions(lw, expected, r, toolscache.ReflectorOptions{Name: "members"}).RunWithContext(ctx)
}

// list reduces page by page. It asks etcd, never the memory of an API server,
// which may be older than what was seen before (kubernetes#59848).
func (r *reflector[T]) list(ctx context.Context, resource dynamic.ResourceInterface, options metav1.ListOptions) (runtime.Object, error) {
	out := &metainternalversion.List{}
	options.ResourceVersion, options.ResourceVersionMatch, options.Limit = "", "", 0
	transform := r.Transformer()
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
