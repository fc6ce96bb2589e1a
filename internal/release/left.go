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
	for _, l := range []leftover{{
		kind: r.Kinds.Pools, is: func(o metav1.Object) bool { return len(inputsOf(o)) > 0 },
		words: "%d pools with annotations of yours (" + settings.Domain + "/…): nobody reads them now, and they count again after an install",
	}, {
		kind:    schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ControllerRevision"},
		options: []client.ListOption{client.HasLabels{settings.StampKey}}, is: func(metav1.Object) bool { return true },
		words: "%d recorded revisions, which go with their templates: kubectl delete controllerrevisions -A -l " + settings.StampKey,
	}} {
		if err := r.leave(ctx, l, namespaces); err != nil {
			return err
		}
	}
	return r.leave(ctx, leftover{
		kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, options: []client.ListOption{client.HasLabels{settings.EnforcementKey}},
		is:    func(metav1.Object) bool { return true },
		words: "%d namespaces with your label " + settings.EnforcementKey,
	}, []string{metav1.NamespaceAll})
}

// leftover is a kind of objects, and which of them stay.
type leftover struct {
	kind    schema.GroupVersionKind
	options []client.ListOption
	is      func(metav1.Object) bool
	words   string
}

func (r *Releaser) leave(ctx context.Context, l leftover, namespaces []string) error {
	count := 0
	for _, namespace := range namespaces {
		err := each(ctx, r.Client, l.kind, partial, func(o metav1.Object) error {
			if l.is(o) {
				count++
			}
			return nil
		}, append([]client.ListOption{client.InNamespace(namespace)}, l.options...)...)
		if apierrors.IsForbidden(err) {
			r.report.Left = append(r.report.Left, l.kind.Kind+"s: you may not list them")
			return nil
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
