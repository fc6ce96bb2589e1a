package platform_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

func TestServedKinds(t *testing.T) {
	const core, ext = agentsandbox.CoreGroup, agentsandbox.ExtensionsGroup
	whole := []string{"SandboxTemplate", "SandboxClaim", "SandboxWarmPool"}
	for name, tc := range map[string]struct {
		serves map[string][]string
		err    error
		found  bool
		pools  string
	}{
		"nothing":            {nil, nil, false, ""},
		"the newest version": {map[string][]string{core + "/v1beta1": {"Sandbox"}, ext + "/v1beta1": whole, ext + "/v1alpha1": whole}, nil, true, "v1beta1"},
		"an old version":     {map[string][]string{core + "/v1alpha1": {"Sandbox"}, ext + "/v1alpha1": whole}, nil, true, "v1alpha1"},
		"no extensions":      {map[string][]string{core + "/v1beta1": {"Sandbox"}}, nil, false, ""},
		"no pools":           {map[string][]string{core + "/v1beta1": {"Sandbox"}, ext + "/v1beta1": whole[:2]}, nil, false, ""},
		"each in some":       {map[string][]string{core + "/v1beta1": {"Sandbox"}, ext + "/v1beta1": whole[:2], ext + "/v1alpha1": whole}, nil, true, "v1alpha1"},
		"no answer":          {nil, errors.New("no answer"), false, ""},
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
			if found != tc.found || !errors.Is(err, tc.err) || k.Pools.Version != tc.pools {
				t.Errorf("%v, %t, %v; want pools %q, %t, %v", k, found, err, tc.pools, tc.found, tc.err)
			}
		})
	}
}
