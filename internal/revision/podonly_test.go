package revision

import (
	"fmt"
	"testing"
)

// Gates are taken off before a Pod runs, so they say nothing of what runs.
func TestGatesAreNoneOfAPods(t *testing.T) {
	spec := map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}
	free := podSpecWith(t, spec)
	spec["schedulingGates"] = []any{map[string]any{"name": "example.com/wait"}}
	template, err := FromSpec(map[string]any{"podTemplate": map[string]any{"spec": spec}})
	if err != nil {
		t.Fatal(err)
	}
	if !template.PodOnly().Equal(free) {
		t.Errorf("the Pod of a template with gates is %s", template.PodOnly().JSON())
	}
	if !Equal(template.Redact().PodOnly(), free, PathSet{}) {
		t.Error("the Pod of a template with gates, of which digests are kept, differs")
	}
}

// The deprecated name of serviceAccountName counts where there is no other.
func TestServiceAccountsOfPods(t *testing.T) {
	for name, tc := range map[string]struct {
		spec, want string
		// lost where digests are kept.
		lost bool
	}{
		"none":         {"{hostname: a}", "{hostname: a}", false},
		"its name":     {"{serviceAccountName: a}", "{serviceAccountName: a}", false},
		"the old name": {"{serviceAccount: a, subdomain: b}", "{serviceAccountName: a, subdomain: b}", true},
		"both":         {"{serviceAccount: a, serviceAccountName: b}", "{serviceAccountName: b}", false},
	} {
		t.Run(name, func(t *testing.T) {
			of, want := mustPod(t, tc.spec), mustPod(t, tc.want)
			if !of.PodOnly().Equal(want) {
				t.Errorf("the Pod is %s, want %s", of.PodOnly().JSON(), want.JSON())
			}
			if got := Equal(of.Redact().PodOnly(), want, PathSet{}); got == tc.lost {
				t.Errorf("by digests the Pod is the same: %t, want %t", got, !tc.lost)
			}
		})
	}
}

// A Pod has the volume of a volumeClaimTemplate in the place of the one that its template says.
func TestVolumesThatClaimsReplace(t *testing.T) {
	volume := func(name string) any {
		return map[string]any{"name": name, "emptyDir": map[string]any{"medium": "Memory"}}
	}
	claim := func(name string) any { return map[string]any{"metadata": map[string]any{"name": name}} }
	many := func(one func(string) any, prefix string) (out []any) {
		for i := range 65 {
			out = append(out, one(fmt.Sprint(prefix, i)))
		}
		return out
	}
	for name, tc := range map[string]struct {
		volumes, claims, want []any
		// tooMany to look for where digests are kept.
		tooMany bool
	}{
		"none":               {nil, []any{claim("a")}, nil, false},
		"no claims":          {[]any{volume("a")}, nil, []any{volume("a")}, false},
		"others":             {[]any{volume("a")}, []any{claim("b")}, []any{volume("a")}, false},
		"the only one":       {[]any{volume("a")}, []any{claim("a")}, nil, false},
		"in the middle":      {[]any{volume("a"), volume("b"), volume("c")}, []any{claim("d"), claim("b")}, []any{volume("a"), volume("c")}, false},
		"a claim of no name": {[]any{volume("a")}, []any{map[string]any{}}, []any{volume("a")}, false},
		"many":               {many(volume, "a"), append(many(claim, "b"), claim("a1")), append([]any{volume("a0")}, many(volume, "a")[2:]...), true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"hostname": "a"}
			of, err := FromSpec(map[string]any{"volumeClaimTemplates": tc.claims, "podTemplate": map[string]any{"spec": map[string]any{"hostname": "a", "volumes": tc.volumes}}})
			if err != nil {
				t.Fatal(err)
			}
			if tc.want != nil {
				spec["volumes"] = tc.want
			}
			want := podSpecWith(t, spec)
			if !of.PodOnly().Equal(want) {
				t.Errorf("the Pod is %s, want %s", of.PodOnly().JSON(), want.JSON())
			}
			kept := of.Redact()
			if got := Equal(kept.PodOnly(), want, PathSet{}); got == tc.tooMany {
				t.Errorf("the Pod by digests is the same: %t, want %t: %s", got, !tc.tooMany, kept.PodOnly().JSON())
			}
			if got := kept.PodOnly().Hash(); got != want.Hash() {
				t.Errorf("the hash of the Pod by digests is %s, want %s", got, want.Hash())
			}
		})
	}
}
