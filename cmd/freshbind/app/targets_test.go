package app

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/platform/kruise"
)

type kruiseResolver struct{}

func (kruiseResolver) Resource(_ context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	return gr.WithVersion("v1alpha1"), nil
}

// Where a cluster has several platforms somebody can choose, and gets the first of them
// otherwise.
func TestWhichPlatformIsLookedAt(t *testing.T) {
	for name, tc := range map[string]struct {
		serves []schema.GroupResource
		asked  string
		want   string
	}{
		"one":            {[]schema.GroupResource{agentsandbox.Pools}, "", agentsandbox.Name},
		"the other":      {[]schema.GroupResource{kruise.Sets}, "", kruise.Name},
		"both":           {[]schema.GroupResource{agentsandbox.Pools, kruise.Sets}, "", agentsandbox.Name},
		"both, as asked": {[]schema.GroupResource{agentsandbox.Pools, kruise.Sets}, checker.Kruise, kruise.Name},
		"what is absent": {[]schema.GroupResource{kruise.Sets}, checker.AgentSandbox, agentsandbox.Name},
		"none":           {nil, "", agentsandbox.Name},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := platformOf(servesOnly(tc.serves), tc.asked)
			if err != nil || got.name != tc.want {
				t.Errorf("platform %q, error %v, want %q", got.name, err, tc.want)
			}
		})
	}
}

type servesOnly []schema.GroupResource

func (s servesOnly) Resource(_ context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	if !slices.Contains(s, gr) {
		return schema.GroupVersionResource{}, fmt.Errorf("asking: %w", liveread.ErrNotServed)
	}
	return gr.WithVersion("v1"), nil
}

// Nobody who names a kind gets another one, although two have the name.
func TestWhatARolloutIsAbout(t *testing.T) {
	object := func(kind string, spec map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: kruise.Group, Version: "v1alpha1", Kind: kind})
		u.SetNamespace("prod")
		u.SetName("python")
		return u
	}
	inline, refers := object("SandboxSet", map[string]any{}), object("SandboxSet", map[string]any{"templateRef": map[string]any{"name": "python"}})
	for name, tc := range map[string]struct {
		pool *unstructured.Unstructured
		args []string
		want []string
	}{
		"a pool":                          {inline, []string{"pool/python"}, []string{"SandboxSet"}},
		"a pool, by its kind":             {inline, []string{"sandboxset", "python"}, []string{"SandboxSet"}},
		"a pool that refers":              {refers, []string{"pool/python"}, []string{"SandboxSet", "SandboxTemplate"}},
		"a pool that refers, by its kind": {refers, []string{"sbs/python"}, []string{"SandboxSet"}},
		"a template that is a pool":       {inline, []string{"template/python"}, []string{"SandboxSet"}},
		"a template that a pool names":    {refers, []string{"template/python"}, []string{"SandboxTemplate"}},
		"a template, by its kind":         {inline, []string{"sandboxtemplate/python"}, []string{"SandboxTemplate"}},
		"a template, by kind and group":   {inline, []string{"sandboxtemplates." + kruise.Group, "python"}, []string{"SandboxTemplate"}},
	} {
		t.Run(name, func(t *testing.T) {
			resource, err := parseResourceName(tc.args)
			if err != nil {
				t.Fatal(err)
			}
			c := &cli.Cluster{
				Client:   fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(tc.pool.DeepCopy(), object("SandboxTemplate", map[string]any{})).Build(),
				Resolver: kruiseResolver{}, Objects: kruise.Commands{},
			}
			found, err := resource.templates(t.Context(), c, "prod")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, template := range found {
				got = append(got, template.GetKind())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("kinds (-want,+got):\n%s", diff)
			}
		})
	}
}
