package platform

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PageSize is how many objects a list without a cache asks for at once.
const PageSize = 500

// ListPages lists objects, as many at once as the options say. It writes into the options where it is.
func ListPages(ctx context.Context, api client.Reader, list schema.GroupVersionKind, options *client.ListOptions) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for {
		var page unstructured.UnstructuredList
		page.SetGroupVersionKind(list)
		if err := api.List(ctx, &page, options); err != nil {
			return nil, err
		}
		for i := range page.Items {
			out = append(out, &page.Items[i])
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}
