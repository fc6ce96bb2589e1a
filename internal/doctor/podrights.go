package doctor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// atMost is how many Pods that may be members are looked at: one is enough to tell.
const atMost = 500

// podDeletes looks for Pods that only Freshbind would take away, where it may not.
func (d *Doctor) podDeletes(ctx context.Context) ([]Finding, error) {
	served, found, err := d.Kinds(ctx)
	if err != nil || !found {
		return nil, err
	}
	namespaces := d.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var out []Finding
	for _, namespace := range namespaces {
		missing, err := d.missing(ctx, d.User, namespace, PodDeletes)
		if err != nil {
			return out, err
		}
		if len(missing) == 0 {
			continue
		}
		bare, err := d.barePod(ctx, namespace, served.Pools)
		if err != nil {
			return out, err
		}
		if bare != "" {
			out = append(out, failed("helm upgrade --set legacy.barePods=true",
				"%s may not delete pods in %s, and pools there have pods as their members, such as %s (agent-sandbox v0.1 and v0.2): claims try stale ones again and again",
				d.User, where(namespace), bare))
		}
		waiting, err := d.leftBehind(ctx, namespace)
		if err != nil {
			return out, err
		}
		if waiting != "" {
			out = append(out, failed("helm upgrade --set legacy.secondScheduler=true",
				"%s may not delete pods in %s, and some there, such as %s, wait for scheduler %s, which scheduling.mode does not run any more",
				d.User, where(namespace), waiting, d.FormerScheduler))
		}
	}
	return out, nil
}

// barePod names a Pod that is itself a member of a pool; "" when there is none.
func (d *Doctor) barePod(ctx context.Context, namespace string, pools schema.GroupVersionKind) (string, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "PodList"})
	if err := d.Client.List(ctx, &list, client.InNamespace(namespace), client.Limit(atMost), client.HasLabels{d.BarePodLabel}); err != nil {
		return "", fmt.Errorf("listing pods: %w", err)
	}
	for i := range list.Items {
		owner := metav1.GetControllerOfNoCopy(&list.Items[i])
		if owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == pools.GroupKind() {
			return list.Items[i].Namespace + "/" + list.Items[i].Name, nil
		}
	}
	return "", nil
}

// leftBehind names a Pod that waits for a second scheduler of once; "" when there is
// none.
func (d *Doctor) leftBehind(ctx context.Context, namespace string) (string, error) {
	if d.FormerScheduler == "" {
		return "", nil
	}
	var list corev1.PodList
	waiting := client.MatchingFields{"spec.schedulerName": d.FormerScheduler, "spec.nodeName": ""}
	if err := d.Client.List(ctx, &list, client.InNamespace(namespace), client.Limit(1), waiting); err != nil {
		return "", fmt.Errorf("listing pods: %w", err)
	}
	if len(list.Items) == 0 {
		return "", nil
	}
	return list.Items[0].Namespace + "/" + list.Items[0].Name, nil
}
