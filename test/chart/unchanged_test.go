package chart

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// restFor is how many looks in a row have to find the same.
const restFor = 20

// objects are all that a namespace has, whatever their kind, but for events: those
// say what happened.
func (w *world) objects(ctx context.Context, namespace string) (map[string]*unstructured.Unstructured, error) {
	c, err := dynamic.NewForConfig(w.cluster.Config())
	if err != nil {
		return nil, err
	}
	lists, err := w.clients.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	out := map[string]*unstructured.Unstructured{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Name == "events" {
				continue
			}
			found, err := c.Resource(gv.WithResource(r.Name)).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", r.Name, err)
			}
			for i := range found.Items {
				out[r.Name+"/"+found.Items[i].GetName()] = &found.Items[i]
			}
		}
	}
	return out, nil
}

// atRest returns all objects of a namespace once the platform's controllers have
// written the last of them.
func (w *world) atRest(t *testing.T, namespace string) map[string]*unstructured.Unstructured {
	t.Helper()
	var last map[string]*unstructured.Unstructured
	still := 0
	w.eventually(t, "namespace "+namespace+" is at rest", func(ctx context.Context) (string, bool) {
		now, err := w.objects(ctx, namespace)
		if err != nil {
			return err.Error(), false
		}
		change := cmp.Diff(last, now)
		if still++; change != "" {
			still = 0
		}
		last = now
		return change, still >= restFor
	})
	return last
}

// onlyDigestsCame compares every object of a namespace: none has changed, and none
// came but revisions, which hold no value.
func (w *world) onlyDigestsCame(t *testing.T, namespace string, before map[string]*unstructured.Unstructured) {
	t.Helper()
	var after map[string]*unstructured.Unstructured
	w.eventually(t, "Freshbind has looked at namespace "+namespace+", and recorded a revision", func(ctx context.Context) (string, bool) {
		var err error
		if after, err = w.objects(ctx, namespace); err != nil {
			return err.Error(), false
		}
		keys := slices.Collect(maps.Keys(after))
		return fmt.Sprint(keys), slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, "controllerrevisions/") })
	})
	for key, o := range after {
		if _, known := before[key]; known || !strings.HasPrefix(key, "controllerrevisions/") {
			continue
		}
		delete(after, key)
		if data, _, _ := unstructured.NestedMap(o.Object, "data"); len(data) != 1 || data["digests"] == nil || strings.Contains(fmt.Sprint(data), "sandbox:v1") {
			t.Errorf("%s has more than digests: %v", key, data)
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("objects of namespace %s (-before,+after):\n%s", namespace, diff)
	}
}
