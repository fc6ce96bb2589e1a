package upstream

import (
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/freshbind/freshbind/test/controlplane"
)

// Freshbind remembers what a template renders to by its UID and generation. In
// every release a write that changes the spec is another generation, with a
// status subresource and without one, and one that changes metadata is not.
func TestATemplatesGenerationNamesItsSpec(t *testing.T) {
	c, err := controlplane.Start(t.Context(), controlplane.Options{Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range slices.Concat(Releases(), OldReleases()) {
		t.Run(release, func(t *testing.T) {
			crds, err := CRDs(t.Context(), release)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
				return crd.Spec.Names.Kind == "SandboxTemplate"
			})
			// In a group of its own, so that all releases are served at once.
			crd := crds[i]
			crd.Spec.Group = "r" + strings.ReplaceAll(release[1:], ".", "-") + ".example.com"
			crd.Name = crd.Spec.Names.Plural + "." + crd.Spec.Group
			if err := c.InstallCRDs(t.Context(), crd); err != nil {
				t.Fatal(err)
			}
			for _, version := range crd.Spec.Versions {
				if version.Served {
					writeTemplate(t, client, crd, version.Name)
				}
			}
		})
	}
}

// writeTemplate writes a template in all ways that there are.
func writeTemplate(t *testing.T, client dynamic.Interface, crd *apiextensionsv1.CustomResourceDefinition, version string) {
	t.Helper()
	gvr := schema.GroupVersionResource{Group: crd.Spec.Group, Version: version, Resource: crd.Spec.Names.Plural}
	templates := client.Resource(gvr).Namespace("default")
	spec := func(image string) map[string]any {
		return map[string]any{"podTemplate": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}}}}
	}
	template := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crd.Spec.Group + "/" + version, "kind": "SandboxTemplate", "metadata": map[string]any{"name": "t-" + version}, "spec": spec("a"),
	}}
	stored, err := templates.Create(t.Context(), template, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, next *unstructured.Unstructured, err error, changes bool) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %s: %v", version, what, err)
		}
		if changed := next.GetGeneration() != stored.GetGeneration(); changed != changes || next.GetUID() != stored.GetUID() {
			t.Errorf("%s: %s: generation %d after %d", version, what, next.GetGeneration(), stored.GetGeneration())
		}
		stored = next
	}
	patch := func(text string) (*unstructured.Unstructured, error) {
		return templates.Patch(t.Context(), template.GetName(), types.MergePatchType, []byte(text), metav1.PatchOptions{})
	}
	next, err := patch(`{"metadata":{"annotations":{"a":"b"},"labels":{"a":"b"}}}`)
	check("annotate", next, err, false)
	next, err = patch(`{"spec":{"podTemplate":{"spec":{"dnsPolicy":"None"}}}}`)
	check("patch the spec", next, err, true)
	claimed := stored.DeepCopy()
	claimed.Object["spec"] = spec("b")
	claimed.SetGeneration(1)
	next, err = templates.Update(t.Context(), claimed, metav1.UpdateOptions{})
	check("replace it, and say that it is generation 1", next, err, true)
	forged := stored.DeepCopy()
	forged.SetGeneration(100)
	next, err = templates.Update(t.Context(), forged, metav1.UpdateOptions{})
	check("say that it is another generation", next, err, false)
	uid := stored.GetUID()
	if err := templates.Delete(t.Context(), template.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	template.SetUID(uid)
	again, err := templates.Create(t.Context(), template, metav1.CreateOptions{})
	if err == nil && again.GetUID() == uid {
		t.Errorf("%s: a template that is created again has the UID of the one before", version)
	}
}
