package release

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/settings"
)

// left says in the report what stays on purpose, because it is the user's, or
// because it may be wanted when Freshbind comes back. What may not be read is
// told as that.
func (r *Releaser) left(ctx context.Context, namespaces []string) error {
	var pools []schema.GroupVersionKind
	for _, p := range r.Platforms {
		pools = append(pools, p.Kinds.Pools)
	}
	for _, l := range []leftover{{
		kinds: pools, is: func(o metav1.Object) bool { return len(inputsOf(o)) > 0 },
		words: "%d pools with annotations of yours (" + settings.Domain + "/…): nobody reads them now, and they count again after an install",
	}, {
		kinds:   []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "ControllerRevision"}},
		options: []client.ListOption{client.HasLabels{settings.StampKey}}, is: func(metav1.Object) bool { return true },
		words: "%d recorded revisions, which go with their templates: kubectl delete controllerrevisions -A -l " + settings.StampKey,
	}} {
		if err := r.leave(ctx, l, namespaces); err != nil {
			return err
		}
	}
	return r.leave(ctx, leftover{
		kinds: []schema.GroupVersionKind{{Version: "v1", Kind: "Namespace"}}, options: []client.ListOption{client.HasLabels{settings.EnforcementKey}},
		is:    func(metav1.Object) bool { return true },
		words: "%d namespaces with your label " + settings.EnforcementKey,
	}, []string{metav1.NamespaceAll})
}

// leftover are kinds of objects, and which of them stay.
type leftover struct {
	kinds   []schema.GroupVersionKind
	options []client.ListOption
	is      func(metav1.Object) bool
	words   string
}

func (r *Releaser) leave(ctx context.Context, l leftover, namespaces []string) error {
	count := 0
	for _, kind := range l.kinds {
		err := r.count(ctx, kind, l, namespaces, &count)
		if apierrors.IsForbidden(err) {
			r.report.Left = append(r.report.Left, kind.Kind+"s: you may not list them")
			continue
		}
		if err != nil {
			return err
		}
	}
	if count > 0 {
		r.report.Left = append(r.report.Left, fmt.Sprintf(l.words, count))
	}
	return nil
}

func (r *Releaser) count(ctx context.Context, kind schema.GroupVersionKind, l leftover, namespaces []string, n *int) error {
	for _, namespace := range namespaces {
		err := each(ctx, r.Client, kind, partial, func(o metav1.Object) error {
			if l.is(o) {
				*n++
			}
			return nil
		}, append([]client.ListOption{client.InNamespace(namespace)}, l.options...)...)
		if err != nil {
			return err
		}
	}
	return nil
}
