package release

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// form is how much of each object a list returns.
type form int

const (
	whole form = iota
	partial
)

// pages lists objects and hands them on in pieces. A list that takes so long
// that the API server forgets it begins anew. Of a kind that is not served there
// are none.
func pages(
	ctx context.Context, c client.Client, kind schema.GroupVersionKind, as form, do func([]client.Object) error, options ...client.ListOption,
) error {
	for next := ""; kind.Kind != ""; {
		list := listOf(kind, as)
		err := c.List(ctx, list, append([]client.ListOption{client.Limit(pageSize), client.Continue(next)}, options...)...)
		if next != "" && apierrors.IsResourceExpired(err) {
			next = ""
			continue
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		var objects []client.Object
		err = meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			obj.GetObjectKind().SetGroupVersionKind(kind)
			objects = append(objects, obj)
			return nil
		})
		if err != nil {
			return fmt.Errorf("reading the list of %s: %w", kind.Kind, err)
		}
		if err := do(objects); err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
	return nil
}

// each does something to each object of a list, one after the other.
func each(
	ctx context.Context, c client.Client, kind schema.GroupVersionKind, as form, do func(metav1.Object) error, options ...client.ListOption,
) error {
	return pages(ctx, c, kind, as, func(objects []client.Object) error {
		for _, obj := range objects {
			if err := do(obj); err != nil {
				return err
			}
		}
		return nil
	}, options...)
}

func listOf(kind schema.GroupVersionKind, as form) client.ObjectList {
	lists := kind.GroupVersion().WithKind(kind.Kind + "List")
	if as == partial {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(lists)
		return list
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(lists)
	return list
}
