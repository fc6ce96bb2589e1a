package platform_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/platform/kruise"
)

// Where a pool is its own template both are found by one, and claims without objects
// are not looked for.
func TestServedKindsOfAPoolThatIsItsOwnTemplate(t *testing.T) {
	kind := func(name, resource string) platform.Kind {
		return platform.Kind{GroupKind: schema.GroupKind{Group: "g", Kind: name}, Resource: resource}
	}
	has := platform.Kinds{Member: kind("Box", "boxes"), Template: kind("Fleet", "fleets"), Pool: kind("Fleet", "fleets"), Versions: []string{"v1", "v1alpha1"}}
	ask := platform.Discovery(func(_ context.Context, gv string) (*metav1.APIResourceList, error) {
		if gv != "g/v1" {
			t.Errorf("%s is asked for although all is found", gv)
		}
		return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Kind: "Box"}, {Kind: "Fleet"}}}, nil
	})
	k, found, err := ask.Find(t.Context(), has)
	v1 := schema.GroupVersion{Group: "g", Version: "v1"}
	want := platform.Served{Sandboxes: v1.WithKind("Box"), Templates: v1.WithKind("Fleet"), Pools: v1.WithKind("Fleet")}
	if k != want || !found || err != nil {
		t.Errorf("Find() = %v, %t, %v; want %v", k, found, err, want)
	}
	if diff := cmp.Diff([]string{"boxes", "fleets"}, has.Resources()); diff != "" {
		t.Errorf("resources (-want,+got):\n%s", diff)
	}
}

// What pools can refer to besides need not be served.
func TestServedSharedTemplates(t *testing.T) {
	for name, tc := range map[string]struct {
		serves  []string
		found   bool
		version string
	}{
		"all":            {[]string{"Sandbox", "SandboxSet", "SandboxTemplate"}, true, "v1alpha1"},
		"no templates":   {[]string{"Sandbox", "SandboxSet"}, true, ""},
		"templates only": {[]string{"SandboxTemplate"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ask := platform.Discovery(func(context.Context, string) (*metav1.APIResourceList, error) {
				list := &metav1.APIResourceList{}
				for _, kind := range tc.serves {
					list.APIResources = append(list.APIResources, metav1.APIResource{Kind: kind})
				}
				return list, nil
			})
			k, found, err := ask.Find(t.Context(), kruise.Objects{}.Kinds())
			if err != nil || found != tc.found || k.SharedTemplates.Version != tc.version {
				t.Errorf("%v, %t, %v; want templates %q, %t", k, found, err, tc.version, tc.found)
			}
		})
	}
	want := []string{"sandboxes", "sandboxsets", "sandboxtemplates"}
	if diff := cmp.Diff(want, kruise.Objects{}.Kinds().Resources()); diff != "" {
		t.Errorf("resources (-want,+got):\n%s", diff)
	}
}

func TestServedKinds(t *testing.T) {
	const core, ext = agentsandbox.CoreGroup, agentsandbox.ExtensionsGroup
	whole := []string{"SandboxTemplate", "SandboxClaim", "SandboxWarmPool"}
	for name, tc := range map[string]struct {
		serves map[string][]string
		err    error
		found  bool
		// claims and pools are the versions that those are found in.
		claims, pools string
	}{
		"nothing":            {nil, nil, false, "", ""},
		"the newest version": {map[string][]string{core + "/v1beta1": {"Sandbox"}, ext + "/v1beta1": whole, ext + "/v1alpha1": whole}, nil, true, "v1beta1", "v1beta1"},
		"an old version":     {map[string][]string{core + "/v1alpha1": {"Sandbox"}, ext + "/v1alpha1": whole}, nil, true, "v1alpha1", "v1alpha1"},
		"no extensions":      {map[string][]string{core + "/v1beta1": {"Sandbox"}}, nil, false, "", ""},
		"no pools":           {map[string][]string{core + "/v1beta1": {"Sandbox"}, ext + "/v1beta1": whole[:2]}, nil, false, "", ""},
		"each in some":       {map[string][]string{core + "/v1beta1": {"Sandbox"}, ext + "/v1beta1": whole[:2], ext + "/v1alpha1": whole}, nil, true, "v1beta1", "v1alpha1"},
		"no answer":          {nil, errors.New("no answer"), false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ask := platform.Discovery(func(_ context.Context, gv string) (*metav1.APIResourceList, error) {
				if tc.err != nil {
					return nil, tc.err
				}
				if tc.serves[gv] == nil {
					return nil, apierrors.NewNotFound(schema.GroupResource{}, gv)
				}
				list := &metav1.APIResourceList{}
				for _, kind := range tc.serves[gv] {
					list.APIResources = append(list.APIResources, metav1.APIResource{Kind: kind})
				}
				return list, nil
			})
			k, found, err := ask.Find(t.Context(), agentsandbox.Objects{}.Kinds())
			if found != tc.found || !errors.Is(err, tc.err) || k.Pools.Version != tc.pools || k.Claims.Version != tc.claims {
				t.Errorf("%v, %t, %v; want claims %q, pools %q, %t, %v", k, found, err, tc.claims, tc.pools, tc.found, tc.err)
			}
		})
	}
}
