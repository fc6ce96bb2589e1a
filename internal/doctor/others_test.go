package doctor

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/platform"
)

// servedAs has kinds in that version; "" for none.
func servedAs(version string) func(context.Context) (platform.Served, bool, error) {
	return func(context.Context) (platform.Served, bool, error) {
		gvk := schema.GroupVersionKind{Group: "g", Version: version}
		return platform.Served{Sandboxes: gvk, Pools: gvk}, version != "", nil
	}
}

func TestWhichPlatformsThereAre(t *testing.T) {
	for name, tc := range map[string]struct {
		first, other string
		want         []Finding
	}{
		"none":      {"", "", []Finding{{Status: Warning, Found: "a is not installed: there is nothing to guard", Do: "install A; Freshbind finds it within seconds"}}},
		"one":       {"v1", "", []Finding{{Status: OK, Found: "a: sandboxes v1, pools v1"}}},
		"the other": {"", "v2", []Finding{{Status: OK, Found: "b: sandboxes v2, pools v2"}}},
		"both":      {"v1", "v2", []Finding{{Status: OK, Found: "a: sandboxes v1, pools v1"}, {Status: OK, Found: "b: sandboxes v2, pools v2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Doctor{Name: "a", Platform: platform.Kinds{Product: "A"}, Kinds: servedAs(tc.first), Others: []Other{{Name: "b", Kinds: servedAs(tc.other)}}}
			got, err := d.platforms(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings (-want,+got):\n%s", diff)
			}
		})
	}
	broken := errors.New("no answer")
	d := &Doctor{Kinds: servedAs("v1"), Others: []Other{{Kinds: func(context.Context) (platform.Served, bool, error) { return platform.Served{}, false, broken }}}}
	if _, err := d.platforms(t.Context()); !errors.Is(err, broken) {
		t.Errorf("the error is %v, want %v", err, broken)
	}
}

// Each check of webhooks is made for those of every platform, and stops where one cannot
// be made.
func TestEverywhere(t *testing.T) {
	named := func(name string) *admissionregistrationv1.ValidatingWebhookConfiguration {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	d := &Doctor{Validating: named("a"), Others: []Other{{Validating: named("b")}, {Validating: named("c")}}}
	fails := errors.New("not found out")
	for failing, want := range map[string][]string{"": {"a", "b", "c"}, "b": {"a", "b"}, "a": {"a"}} {
		var asked []string
		_, err := d.everywhere(func(d *Doctor, _ context.Context) ([]Finding, error) {
			if asked = append(asked, d.Validating.Name); d.Validating.Name == failing {
				return nil, fails
			}
			return nil, nil
		})(t.Context())
		if diff := cmp.Diff(want, asked); diff != "" || (err != nil) != (failing != "") {
			t.Errorf("failing at %q: %v, asked (-want,+got):\n%s", failing, err, diff)
		}
	}
}

func TestRightsOfOtherPlatformsAreNeeded(t *testing.T) {
	d := &Doctor{Namespaces: []string{"n"}, Others: []Other{{Rights: []rbacv1.PolicyRule{right("g", "get", "boxes")}}}}
	for _, n := range d.needs() {
		if n.rule.Resources[0] == "boxes" && n.namespace == "n" {
			return
		}
	}
	t.Error("the rights of the other platform are not looked at")
}
