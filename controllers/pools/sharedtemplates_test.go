package pools

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/freshbind/freshbind/internal/platform/kruise"
)

// A pool that is its own template can refer to one of another kind, which may have its name.
func TestTemplatesOfTwoKinds(t *testing.T) {
	kind := func(kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: kruise.Group, Version: "v1alpha1", Kind: kind}
	}
	sets, templates := kind("SandboxSet"), kind("SandboxTemplate")
	made := func(kind schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
		u := object(kind)
		u.Object["spec"] = spec
		u.SetNamespace("ns")
		u.SetName(name)
		return u
	}
	own := made(sets, "box", map[string]any{"template": map[string]any{}})
	referring := made(sets, "referring", map[string]any{"templateRef": map[string]any{"name": "box"}})
	template := made(templates, "box", map[string]any{"template": map[string]any{}})

	scheme := runtime.NewScheme()
	for _, k := range []schema.GroupVersionKind{sets, templates} {
		scheme.AddKnownTypeWithName(k, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(listOf(k), &unstructured.UnstructuredList{})
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(own, referring, template).Build()
	view := &View{cache: c, objects: kruise.Objects{}, kinds: PoolKinds{Pools: sets, Templates: sets, SharedTemplates: templates}}
	templateOf := func(pool *unstructured.Unstructured) string {
		t.Helper()
		found, err := view.Template(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		if found == nil {
			return ""
		}
		return found.GetKind() + "/" + found.GetName()
	}
	if diff := cmp.Diff([]string{"SandboxSet/box", "SandboxTemplate/box"}, []string{templateOf(own), templateOf(referring)}); diff != "" {
		t.Errorf("templates (-want,+got):\n%s", diff)
	}
	names := func(kind string, of *unstructured.Unstructured) (out []string) {
		for _, key := range view.poolsOfTemplate(kind)(t.Context(), of) {
			out = append(out, key.Name)
		}
		return out
	}
	if diff := cmp.Diff([][]string{{"box"}, {"referring"}}, [][]string{names("", own), names(templates.Kind, template)}); diff != "" {
		t.Errorf("pools of the set, and of the template (-want,+got):\n%s", diff)
	}
	view.kinds.SharedTemplates = schema.GroupVersionKind{}
	if diff := cmp.Diff([]string{"SandboxSet/box", ""}, []string{templateOf(own), templateOf(referring)}); diff != "" {
		t.Errorf("templates, where none are served (-want,+got):\n%s", diff)
	}
}
