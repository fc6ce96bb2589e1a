package holdings

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/test/builders"
)

var (
	template = builders.MakeTemplate("ns", "python").Obj()
	claim    = builders.MakeClaim("ns", "c1").Obj()
	other    = builders.MakeClaim("ns", "c2").Obj()
	cold     = builders.MakeColdStart(claim, template).Obj()
)

func metadata(objs ...*unstructured.Unstructured) []metav1.PartialObjectMetadata {
	var out []metav1.PartialObjectMetadata
	for _, o := range objs {
		out = append(out, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: o.GetName(), Namespace: o.GetNamespace(), OwnerReferences: o.GetOwnerReferences(),
			DeletionTimestamp: o.GetDeletionTimestamp(),
		}})
	}
	return out
}

func TestFindings(t *testing.T) {
	second := builders.SandboxFrom(cold).Name("python-abc").Obj()
	shared := builders.SandboxFrom(cold).Owners(builders.ControllerRef(claim), builders.ControllerRef(other)).Obj()
	going := builders.SandboxFrom(second).Deleting(time.Unix(1, 0)).Obj()
	cases := map[string]struct {
		sandboxes []*unstructured.Unstructured
		want      map[freshness.Reason]string
	}{
		"one":                   {[]*unstructured.Unstructured{cold}, map[freshness.Reason]string{}},
		"none":                  {nil, map[freshness.Reason]string{}},
		"two, one of them ends": {[]*unstructured.Unstructured{cold, going}, map[freshness.Reason]string{}},
		"two": {[]*unstructured.Unstructured{second, cold}, map[freshness.Reason]string{
			freshness.ClaimHoldsAnother: "this claim has 2 sandboxes at once: c1, python-abc; none is deleted",
		}},
		"one for two claims": {[]*unstructured.Unstructured{shared}, map[freshness.Reason]string{
			freshness.MemberClaimed: "sandbox c1 belongs to 2 claims at once, among them c1 and c2; neither is deleted",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, findings(metadata(tc.sandboxes...))); diff != "" {
				t.Errorf("findings() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestRequestsTellIncarnationsApart(t *testing.T) {
	again := builders.ClaimFrom(claim).UID("another").Obj()
	first := claimsOf(t.Context(), &metadata(cold)[0])
	second := claimsOf(t.Context(), &metadata(builders.SandboxFrom(cold).Owners(builders.ControllerRef(again)).Obj())[0])
	if len(first) != 1 || len(second) != 1 || first[0] == second[0] {
		t.Errorf("requests are %v and %v", first, second)
	}
}
