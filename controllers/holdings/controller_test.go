package holdings

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
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

func TestMark(t *testing.T) {
	marked := builders.SandboxFrom(cold).Annotation(platform.BoundToKey, "u").Obj()
	going := builders.SandboxFrom(cold).Deleting(time.Unix(1, 0)).Obj()
	cases := map[string]struct {
		sandbox  *unstructured.Unstructured
		enforced bool
		want     []string
	}{
		"its first sight": {cold, true, []string{`{"metadata":{"uid":"s","annotations":{"freshbind.dev/bound-to":"u"}}}`}},
		"marked already":  {marked, true, nil},
		"being deleted":   {going, true, nil},
		"audited":         {cold, false, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &patches{}
			c := &Controller{client: w, enforced: func(context.Context, string) (bool, error) { return tc.enforced, nil }}
			list := metadata(tc.sandbox)
			list[0].UID, list[0].Annotations = "s", tc.sandbox.GetAnnotations()
			if err := c.mark(t.Context(), Claim{UID: "u"}, list); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, w.bodies); diff != "" {
				t.Errorf("patches (-want,+got):\n%s", diff)
			}
		})
	}
}

// patches records what is patched.
type patches struct {
	client.Writer
	bodies []string
}

func (p *patches) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(obj)
	p.bodies = append(p.bodies, string(body))
	return err
}
