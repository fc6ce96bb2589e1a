package manager

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/controllers/holdings"
	"github.com/freshbind/freshbind/internal/settings"
)

// askedByPools finds what a claim's pool says of its own enforcement, and reads
// nothing where no pool of the namespace says anything.
func askedByPools(
	cached client.Reader, pools schema.GroupVersionKind, find func(ctx context.Context, namespace, claim string) (string, error),
) holdings.Asked {
	return func(ctx context.Context, claim types.NamespacedName) (string, error) {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(pools.GroupVersion().WithKind(pools.Kind + "List"))
		if err := cached.List(ctx, &list, client.InNamespace(claim.Namespace)); err != nil {
			return "", fmt.Errorf("listing the pools of namespace %s: %w", claim.Namespace, err)
		}
		for i := range list.Items {
			if list.Items[i].GetAnnotations()[settings.EnforcementKey] != "" {
				return find(ctx, claim.Namespace, claim.Name)
			}
		}
		return "", nil
	}
}
