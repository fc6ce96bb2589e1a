package holdings

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
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
			if diff := cmp.Diff(tc.want, (&Controller{owners: agentsandbox.Objects{}}).findings(metadata(tc.sandboxes...))); diff != "" {
				t.Errorf("findings() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestRequestsTellIncarnationsApart(t *testing.T) {
	again := builders.ClaimFrom(claim).UID("another").Obj()
	first := (&Controller{owners: agentsandbox.Objects{}}).claimsOf(t.Context(), &metadata(cold)[0])
	second := (&Controller{owners: agentsandbox.Objects{}}).claimsOf(t.Context(), &metadata(builders.SandboxFrom(cold).Owners(builders.ControllerRef(again)).Obj())[0])
	if len(first) != 1 || len(second) != 1 || first[0] == second[0] {
		t.Errorf("requests are %v and %v", first, second)
	}
}

func TestMark(t *testing.T) {
	marked := builders.SandboxFrom(cold).Annotation(settings.BoundToKey, "u").Obj()
	going := builders.SandboxFrom(cold).Deleting(time.Unix(1, 0)).Obj()
	cases := map[string]struct {
		sandbox  *unstructured.Unstructured
		enforced bool
		// asked is what the claim's pool says.
		asked string
		want  []string
	}{
		"its first sight":                   {cold, true, "", []string{`{"metadata":{"uid":"s","annotations":{"freshbind.dev/bound-to":"u"}}}`}},
		"marked already":                    {marked, true, "", nil},
		"being deleted":                     {going, true, "", nil},
		"audited":                           {cold, false, "", nil},
		"audited, also by its claim's pool": {cold, false, "audit", nil},
		"made while nobody looked": {cold, false, "enforce", []string{
			`{"metadata":{"uid":"s","annotations":{"freshbind.dev/bound-to":"u"},"labels":{"freshbind.dev/enforcement":"enforce"}}}`,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &patches{}
			c := &Controller{
				client: w, enforced: func(_ context.Context, _, enforcement string) (bool, error) {
					return tc.enforced || enforcement == "enforce", nil
				},
				asked: func(context.Context, types.NamespacedName) (string, error) { return tc.asked, nil },
			}
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

// What is another one by now, or gone, is no error.
func TestMarkOfWhatHasChanged(t *testing.T) {
	sandboxes := schema.GroupResource{Group: "agents.x-k8s.io", Resource: "sandboxes"}
	cases := map[string]struct {
		err     error
		wantErr bool
	}{
		"another one": {apierrors.NewConflict(sandboxes, "s", nil), false},
		"gone":        {apierrors.NewNotFound(sandboxes, "s"), false},
		"not allowed": {apierrors.NewForbidden(sandboxes, "s", nil), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &Controller{client: &patches{err: tc.err}, enforced: func(context.Context, string, string) (bool, error) { return true, nil }}
			if err := c.mark(t.Context(), Claim{UID: "u"}, metadata(cold)); (err != nil) != tc.wantErr {
				t.Errorf("mark() = %v, want error %t", err, tc.wantErr)
			}
		})
	}
}

// A sandbox says itself that its pool is enforced.
func TestMarkAsksWithWhatTheSandboxSays(t *testing.T) {
	var asked string
	c := &Controller{client: &patches{}, enforced: func(_ context.Context, _, sandbox string) (bool, error) {
		asked = sandbox
		return true, nil
	}}
	list := metadata(cold)
	list[0].Labels = map[string]string{settings.EnforcementKey: "enforce"}
	if err := c.mark(t.Context(), Claim{UID: "u"}, list); err != nil || asked != "enforce" {
		t.Errorf("mark() = %v, asked with %q", err, asked)
	}
}

// A namespace that is enforced from now on has claims whose sandboxes have no
// mark.
func TestClaimsOfANamespace(t *testing.T) {
	unmarked := metadata(cold)[0]
	marked := metadata(builders.SandboxFrom(cold).Name("marked").Obj())[0]
	marked.Annotations = map[string]string{settings.BoundToKey: "u"}
	elsewhere := metadata(cold)[0]
	elsewhere.Namespace = "other"
	gvk := cold.GroupVersionKind()
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	var objs []client.Object
	for _, o := range []metav1.PartialObjectMetadata{unmarked, marked, elsewhere} {
		o.SetGroupVersionKind(gvk)
		objs = append(objs, &o)
	}
	c := &Controller{cache: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build(), sandboxes: gvk, owners: agentsandbox.Objects{}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	want := []Claim{{types.NamespacedName{Namespace: "ns", Name: claim.GetName()}, claim.GetUID()}}
	if diff := cmp.Diff(want, c.claimsIn(t.Context(), ns)); diff != "" {
		t.Errorf("claimsIn() (-want,+got):\n%s", diff)
	}
}

// Upstream takes a claim's UID for the claim, whatever kind it comes under.
func TestSandboxesAreFoundByTheUIDsOfTheirOwners(t *testing.T) {
	nobody := builders.ControllerRef(claim)
	nobody.APIVersion, nobody.Kind = "example.com/v1", "Nobody"
	got := claimUIDs(&metadata(builders.SandboxFrom(cold).Owners(nobody).Obj())[0])
	if diff := cmp.Diff([]string{string(claim.GetUID())}, got); diff != "" {
		t.Errorf("claimUIDs() (-want,+got):\n%s", diff)
	}
}

// patches records what is patched.
type patches struct {
	client.Writer
	bodies []string
	err    error
}

func (p *patches) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(obj)
	p.bodies = append(p.bodies, string(body))
	return errors.Join(err, p.err)
}
