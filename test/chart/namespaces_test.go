package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A namespace may have a name that YAML takes for something else.
func TestNamespacesThatLookLikeOtherValues(t *testing.T) {
	names := []string{"123", "1e3", "no", "null", "true", "y"}
	h := helmForTest(t)
	values := filepath.Join(t.TempDir(), "values.yaml")
	content := "namespaces: ['" + strings.Join(names, "', '") + "']\nroutes: {enabled: true, tokenSecret: t}\n" +
		"sentinel: {enabled: true, gatewayServices: ['123/gateway']}\n"
	if err := os.WriteFile(values, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := h.run(t.Context(), "template", release, h.chart, certManager, "--values", values)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, o := range decode(t, out) {
		namespace, found, err := unstructured.NestedString(o.Object, "metadata", "namespace")
		if err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		if found && slices.Contains(names, namespace) {
			got[o.GetName()] = append(got[o.GetName()], o.GetKind()+" "+namespace)
		}
	}
	bindings := make([]string, len(names))
	for i, name := range names {
		bindings[i] = "RoleBinding " + name
	}
	first := []string{"Role 123", "RoleBinding 123"}
	want := map[string][]string{
		release: bindings, release + "-release": bindings, routesName: bindings, sentinelName: first, release + "-self-test": first, release + "-test": first,
	}
	for _, kinds := range got {
		slices.Sort(kinds)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects in the namespaces (-want +got):\n%s", diff)
	}
}
