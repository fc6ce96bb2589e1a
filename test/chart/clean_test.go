package chart

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cleanNamespace waits until what another test left is gone.
func (w *world) cleanNamespace(t *testing.T) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	w.must(t, client.IgnoreNotFound(w.client.Delete(t.Context(), ns)))
	w.eventually(t, "the namespace of a test before is gone", func(ctx context.Context) (string, bool) {
		err := w.client.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		if apierrors.IsNotFound(err) {
			return "", true
		}
		if err == nil {
			err = w.finish(ctx, ns)
		}
		return fmt.Sprint(err, ns.Status), false
	})
}

// finish ends a namespace that is being deleted, as the controller manager does, which
// begins 5 s after it was asked to.
func (w *world) finish(ctx context.Context, ns *corev1.Namespace) error {
	lists, err := discovery.ServerPreferredNamespacedResources(w.clients.Discovery())
	if err != nil {
		return err
	}
	cfg := w.cluster.Config()
	cfg.WarningHandler = rest.NoWarnings{}
	objects, err := metadata.NewForConfig(cfg)
	if err != nil {
		return err
	}
	deletable := discovery.SupportsAllVerbs{Verbs: []string{"deletecollection", "list"}}
	resources, err := discovery.GroupVersionResources(discovery.FilteredBy(deletable, lists))
	if err != nil {
		return err
	}
	left := 0
	for resource := range resources {
		of := objects.Resource(resource).Namespace(ns.Name)
		background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
		if err := of.DeleteCollection(ctx, background, metav1.ListOptions{}); err != nil {
			return err
		}
		list, err := of.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		left += len(list.Items)
	}
	if left > 0 {
		return fmt.Errorf("%d objects are left", left)
	}
	ns.Spec.Finalizers = nil
	_, err = w.clients.CoreV1().Namespaces().Finalize(ctx, ns, metav1.UpdateOptions{})
	return err
}
