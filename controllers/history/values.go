package history

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Enforced reports whether a namespace, with what one of its pools says itself
// ("" for nothing), is in mode enforce now.
type Enforced func(ctx context.Context, namespace, pool string) (bool, error)

// values decides whether the values of a template may be copied: where nothing
// is enforced, they may not. Whoever may read ControllerRevisions would read
// them without anybody having asked for it.
type values struct {
	// never: the configuration wants digests everywhere.
	never    bool
	enforced Enforced
	// cached has the pools; it may be late, so live has the last word.
	cached, live client.Reader
	pools        schema.GroupVersionKind
	// sharedKind is that of Recorder.
	sharedKind string
	reads      platform.Pools
}

// of reports whether this template's values are kept.
func (v *values) of(ctx context.Context, template *unstructured.Unstructured) (bool, error) {
	if v.never {
		return false, nil
	}
	namespace := template.GetNamespace()
	if kept, err := v.enforced(ctx, namespace, ""); kept || err != nil {
		return kept, wrapMode(err, template)
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(v.pools.GroupVersion().WithKind(v.pools.Kind + "List"))
	if err := v.cached.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return false, fmt.Errorf("listing the pools of namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		pool := &list.Items[i]
		if !v.reads.Pool(pool).RefersTo(v.sharedKind, template.GetName()) || pool.GetAnnotations()[settings.EnforcementKey] == "" {
			continue
		}
		if kept, err := v.byPool(ctx, pool, template); kept || err != nil {
			return kept, err
		}
	}
	return false, nil
}

// byPool asks what the pool says now.
func (v *values) byPool(ctx context.Context, cached, template *unstructured.Unstructured) (bool, error) {
	pool := &unstructured.Unstructured{}
	pool.SetGroupVersionKind(v.pools)
	err := v.live.Get(ctx, client.ObjectKeyFromObject(cached), pool)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading pool %s: %w", cached.GetName(), err)
	}
	if !v.reads.Pool(pool).RefersTo(v.sharedKind, template.GetName()) {
		return false, nil
	}
	kept, err := v.enforced(ctx, pool.GetNamespace(), pool.GetAnnotations()[settings.EnforcementKey])
	return kept, wrapMode(err, template)
}

func wrapMode(err error, template *unstructured.Unstructured) error {
	if err != nil {
		return fmt.Errorf("finding out whether values of template %s may be kept: %w", template.GetName(), err)
	}
	return nil
}

// poolEvents ask for the templates of a pool whose mode, or whose template, is
// another one now. sharedKind is that of Recorder.
func poolEvents(pools platform.Pools, sharedKind string) handler.EventHandler {
	ask := func(pool client.Object, q queue) {
		u, ok := pool.(*unstructured.Unstructured)
		if !ok || u.GetAnnotations()[settings.EnforcementKey] == "" {
			return
		}
		if name := pools.Pool(u).Template; pools.Pool(u).RefersTo(sharedKind, name) && name != "" {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: u.GetNamespace(), Name: name}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { ask(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if enforcementOf(pools, e.ObjectOld) != enforcementOf(pools, e.ObjectNew) {
				ask(e.ObjectOld, q)
				ask(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { ask(e.Object, q) },
	}
}

// enforcementOf is what a pool says of its mode, and for which template.
func enforcementOf(pools platform.Pools, pool client.Object) [3]string {
	u, ok := pool.(*unstructured.Unstructured)
	if !ok {
		return [3]string{}
	}
	refers := pools.Pool(u)
	return [3]string{u.GetAnnotations()[settings.EnforcementKey], refers.Template, refers.TemplateKind}
}

// namespaceEvents ask for all templates of a namespace whose labels change:
// they say its mode, and which floors hold.
func namespaceEvents(cached client.Reader, templates schema.GroupVersionKind) handler.EventHandler {
	all := func(ctx context.Context, obj client.Object) []reconcile.Request {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(templates.GroupVersion().WithKind(templates.Kind + "List"))
		if err := cached.List(ctx, &list, client.InNamespace(obj.GetName())); err != nil {
			return nil
		}
		var out []reconcile.Request
		for i := range list.Items {
			if !isDerived(&list.Items[i]) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
		return out
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				return
			}
			for _, req := range all(ctx, e.ObjectNew) {
				q.Add(req)
			}
		},
	}
}
