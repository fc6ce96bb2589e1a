package cli_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform/kruise"
)

// serves is what an API server has of OpenKruise Agents.
type serves struct{ without schema.GroupResource }

func (s serves) Resource(_ context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	if gr == s.without {
		return schema.GroupVersionResource{}, fmt.Errorf("asking: %w", liveread.ErrNotServed)
	}
	return gr.WithVersion("v1alpha1"), nil
}

// kruiseOf is a cluster in which pools are their own templates, or refer to one.
func kruiseOf(resolver serves, objs ...client.Object) *cli.Cluster {
	return &cli.Cluster{Client: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(objs...).Build(), Resolver: resolver, Objects: kruise.Commands{}}
}

func kruiseObject(kind, name, ref string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: kruise.Group, Version: "v1alpha1", Kind: kind})
	u.SetNamespace(ns)
	u.SetName(name)
	if ref != "" {
		u.Object["spec"] = map[string]any{"templateRef": map[string]any{"name": ref}}
	}
	return u
}

// A name can be that of a pool, which is its own template or refers to one, and of what
// pools refer to.
func TestTemplatesByName(t *testing.T) {
	const pool, template = "SandboxSet", "SandboxTemplate"
	none := serves{}
	for name, tc := range map[string]struct {
		resolver serves
		objs     []client.Object
		named    string
		of       client.Object
		want     string
	}{
		"a pool":                                {none, []client.Object{kruiseObject(pool, "a", "")}, "a", kruiseObject(pool, "a", ""), pool},
		"a template":                            {none, []client.Object{kruiseObject(template, "t", "")}, "t", kruiseObject(pool, "a", "t"), template},
		"a pool beside a namesake":              {none, []client.Object{kruiseObject(pool, "a", ""), kruiseObject(template, "a", "")}, "a", kruiseObject(pool, "a", ""), pool},
		"a pool that refers to a namesake":      {none, []client.Object{kruiseObject(pool, "a", "a"), kruiseObject(template, "a", "")}, "a", kruiseObject(pool, "a", "a"), template},
		"a pool that refers to what is not":     {none, []client.Object{kruiseObject(pool, "a", "t")}, "a", kruiseObject(pool, "a", "t"), ""},
		"nothing":                               {none, nil, "a", kruiseObject(pool, "a", "t"), ""},
		"nothing, and there can be no template": {serves{kruise.Templates}, nil, "a", kruiseObject(pool, "a", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := kruiseOf(tc.resolver, tc.objs...)
			for asked, read := range map[string]func() (*unstructured.Unstructured, error){
				"named": func() (*unstructured.Unstructured, error) { return c.Template(t.Context(), ns, tc.named) },
				"pool's": func() (*unstructured.Unstructured, error) {
					return c.TemplateOf(t.Context(), tc.of.(*unstructured.Unstructured))
				},
			} {
				got, err := read()
				if tc.want == "" {
					if !apierrors.IsNotFound(err) {
						t.Errorf("%s: %v, %v, want that there is none", asked, got, err)
					}
				} else if err != nil || got.GetKind() != tc.want {
					t.Errorf("%s: %v, %v, want a %s", asked, got, err, tc.want)
				}
			}
		})
	}
}
