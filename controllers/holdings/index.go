package holdings

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Index returns the names of the Sandboxes that a claim has and that are not being deleted,
// by the cache that Setup indexes. It is as late as that cache: good enough to know where to look.
func Index(cache client.Reader, sandboxes schema.GroupVersionKind) func(ctx context.Context, namespace, claimUID string) []string {
	return func(ctx context.Context, namespace, claimUID string) []string {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(sandboxes)
		err := cache.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{byClaim: claimUID}, client.UnsafeDisableDeepCopy)
		if err != nil {
			logf.FromContext(ctx).V(2).Info("Left the cache of sandboxes out", "reason", err.Error())
		}
		var names []string
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp == nil {
				names = append(names, list.Items[i].Name)
			}
		}
		return names
	}
}
