package agentsandbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

var (
	testTemplate = builders.MakeTemplate("ns", "python").Obj()
	testPool     = builders.MakePool("ns", "python").Obj()
	testClaim    = builders.MakeClaim("ns", "c1").Obj()
	testMember   = builders.MakeMember(testPool, testTemplate).Name("python-abc").Obj()
)

func TestClassify(t *testing.T) {
	otherClaim := builders.MakeClaim("ns", "c2").Obj()
	oldVersion := builders.ControllerRef(testClaim)
	oldVersion.APIVersion = ExtensionsGroup + "/v1alpha1"
	foreign := builders.ControllerRef(testClaim)
	foreign.APIVersion = "agents.kruise.io/v1alpha1"
	unmarked := builders.ControllerRef(testClaim)
	unmarked.Controller = nil
	nobody := builders.ControllerRef(testClaim)
	nobody.APIVersion, nobody.Kind = "example.com/v1", "Nobody"
	plain, denied := nobody, nobody
	plain.Controller, denied.Controller = nil, ptr.To(false)
	ofPool, notOfPool := builders.ControllerRef(testPool), builders.ControllerRef(testPool)
	ofPool.Controller, notOfPool.Controller = nil, ptr.To(false)
	slashless := builders.ControllerRef(testClaim)
	slashless.APIVersion = ExtensionsGroup
	owned := func(refs ...metav1.OwnerReference) *unstructured.Unstructured {
		return builders.SandboxFrom(testMember).Owners(refs...).Obj()
	}
	bound := builders.Bound(testMember, testClaim, testTemplate).Obj()

	cases := map[string]struct {
		op       admissionv1.Operation
		old, obj *unstructured.Unstructured
		want     freshness.Operation
	}{
		"bind of a member":                    {admissionv1.Update, testMember, bound, freshness.Bind},
		"bind, reference of an older version": {admissionv1.Update, testMember, owned(oldVersion), freshness.Bind},
		"bind, not marked as controller":      {admissionv1.Update, testMember, owned(unmarked), freshness.Bind},
		"bind of nobody's sandbox":            {admissionv1.Update, owned(), bound, freshness.Bind},
		"taken from another claim":            {admissionv1.Update, owned(builders.ControllerRef(otherClaim)), bound, freshness.Bind},
		"a second claim beside the first":     {admissionv1.Update, bound, owned(builders.ControllerRef(testClaim), builders.ControllerRef(otherClaim)), freshness.Bind},
		"bound already":                       {admissionv1.Update, bound, builders.SandboxFrom(bound).Label("x", "y").Obj(), ""},
		"label of a member":                   {admissionv1.Update, testMember, builders.SandboxFrom(testMember).Label("x", "y").Obj(), ""},
		"given back to the pool":              {admissionv1.Update, bound, testMember, ""},
		"claim of another platform":           {admissionv1.Update, testMember, owned(foreign), freshness.ForeignController},
		"a claim's UID under another kind":    {admissionv1.Update, testMember, owned(nobody), freshness.ForeignController},
		"then that claim itself":              {admissionv1.Update, owned(nobody), bound, freshness.Bind},
		"a version without a group":           {admissionv1.Update, testMember, owned(slashless), freshness.ForeignController},
		"another plain owner":                 {admissionv1.Update, testMember, owned(builders.ControllerRef(testPool), plain), ""},
		"another owner that is no controller": {admissionv1.Update, testMember, owned(builders.ControllerRef(testPool), denied), ""},
		"its UID under both kinds, as before": {admissionv1.Update, owned(unmarked, nobody), owned(unmarked, nobody), ""},
		"a pool that is not its controller":   {admissionv1.Create, nil, owned(ofPool), ""},
		"a pool that says it is not":          {admissionv1.Create, nil, owned(notOfPool), ""},
		"birth":                               {admissionv1.Create, nil, testMember, freshness.Birth},
		"cold start":                          {admissionv1.Create, nil, builders.MakeColdStart(testClaim, testTemplate).Obj(), freshness.ColdStart},
		"born with pool and claim":            {admissionv1.Create, nil, owned(builders.ControllerRef(testPool), builders.ControllerRef(testClaim)), freshness.ColdStart},
		"made by hand":                        {admissionv1.Create, nil, owned(), ""},
		"deleted":                             {admissionv1.Delete, testMember, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, ok := (&Platform{}).Classify(tc.op, tc.old, tc.obj)
			if w.Operation != tc.want || ok != (tc.want != "") {
				t.Errorf("Classify() = %q, %t, want %q", w.Operation, ok, tc.want)
			}
		})
	}
}

// Whoever has a sandbox beside its claim is told, also by the claim's own UID.
func TestBesides(t *testing.T) {
	nobody, other := builders.ControllerRef(testClaim), builders.ControllerRef(builders.MakeClaim("ns", "c2").Obj())
	nobody.APIVersion, nobody.Kind = "example.com/v1", "Nobody"
	unmarked := builders.ControllerRef(testClaim)
	unmarked.Controller = nil
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		want   []freshness.Owner
	}{
		"nobody":                    {[]metav1.OwnerReference{builders.ControllerRef(testClaim)}, nil},
		"another claim":             {[]metav1.OwnerReference{builders.ControllerRef(testClaim), other}, []freshness.Owner{{Kind: freshness.OwnedByClaim, Name: "c2", UID: string(other.UID)}}},
		"its UID as another kind's": {[]metav1.OwnerReference{unmarked, nobody}, []freshness.Owner{{Kind: freshness.OwnedByAnother, Name: nobody.Name, UID: string(nobody.UID)}}},
	} {
		t.Run(name, func(t *testing.T) {
			w, ok := (&Platform{}).Classify(admissionv1.Update, testMember, builders.SandboxFrom(testMember).Owners(tc.owners...).Obj())
			if !ok {
				t.Fatal("this is no bind")
			}
			if diff := cmp.Diff(tc.want, besides(w), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("besides() (-want,+got):\n%s", diff)
			}
		})
	}
	if w, _ := (&Platform{}).Classify(admissionv1.Create, nil, testMember); besides(w) != nil {
		t.Errorf("a birth is no claim's, and is beside %v", besides(w))
	}
}

func TestClaimOf(t *testing.T) {
	cases := map[string]struct {
		claim *unstructured.Unstructured
		want  *freshness.Claim
	}{
		"being deleted":      {builders.MakeClaim("ns", "c").Pool("p").UID("u").Deleting(time.Unix(1, 0)).Obj(), &freshness.Claim{UID: "u", Pool: "p", Deleting: true}},
		"v1beta1":            {builders.MakeClaim("ns", "c").Pool("p").UID("u").Obj(), &freshness.Claim{UID: "u", Pool: "p"}},
		"annotation":         {builders.MakeClaim("ns", "c").Pool("p").UID("u").Names("m").Obj(), &freshness.Claim{UID: "u", Pool: "p", Names: []string{"m"}}},
		"v1alpha1, a pool":   {builders.MakeClaimV1Alpha1("ns", "c", "t", "p").UID("u").Obj(), &freshness.Claim{UID: "u", Pool: "p", Template: "t"}},
		"v1alpha1, any pool": {builders.MakeClaimV1Alpha1("ns", "c", "t", "default").UID("u").Obj(), &freshness.Claim{UID: "u", Template: "t", AnyPool: true}},
		"v1alpha1, no pool":  {builders.MakeClaimV1Alpha1("ns", "c", "t", "none").UID("u").Obj(), &freshness.Claim{UID: "u", Template: "t"}},
		"v1alpha1, label":    {builders.MakeClaimV1Alpha1("ns", "c", "t", "p").UID("u").Names("m").Obj(), &freshness.Claim{UID: "u", Pool: "p", Template: "t", Names: []string{"m"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, claimOf(tc.claim)); diff != "" {
				t.Errorf("claimOf() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestWasClaimed(t *testing.T) {
	cases := map[string]struct {
		sandbox *unstructured.Unstructured
		want    bool
	}{
		"member":                   {testMember, false},
		"bound":                    {builders.Bound(testMember, testClaim, testTemplate).Obj(), true},
		"mark on the sandbox only": {builders.SandboxFrom(testMember).Label(claimUIDLabel, "u").Obj(), true},
		"mark on the pod only":     {builders.SandboxFrom(testMember).Set("u", "spec", "podTemplate", "metadata", "labels", claimUIDLabel).Obj(), true},
		"our mark":                 {builders.SandboxFrom(testMember).Annotation(settings.BoundToKey, "u").Obj(), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := wasClaimed(tc.sandbox); got != tc.want {
				t.Errorf("wasClaimed() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	cases := map[string]struct {
		op     freshness.Operation
		reason freshness.Reason
		code   int32
		status metav1.StatusReason
	}{
		"bind, the member's fault":  {freshness.Bind, freshness.StaleRevision, 404, metav1.StatusReasonNotFound},
		"bind, the claim's fault":   {freshness.Bind, freshness.ClaimHoldsAnother, 409, metav1.StatusReasonConflict},
		"bind, passes by itself":    {freshness.Bind, freshness.PodNotYet, 409, metav1.StatusReasonConflict},
		"cold start, whatever":      {freshness.ColdStart, freshness.StaleRevision, 409, metav1.StatusReasonAlreadyExists},
		"birth of a stale member":   {freshness.Birth, freshness.StaleRevision, 403, metav1.StatusReasonForbidden},
		"another controller":        {freshness.ForeignController, freshness.OwnerMismatch, 403, metav1.StatusReasonForbidden},
		"birth, template of before": {freshness.Birth, freshness.TemplateMismatch, 403, metav1.StatusReasonForbidden},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, status := (&Platform{}).Answer(tc.op, tc.reason.Fault())
			if code != tc.code || status != tc.status {
				t.Errorf("Answer() = %d %s, want %d %s", code, status, tc.code, tc.status)
			}
		})
	}
}

func TestPatchesApplyToOneVersionOnly(t *testing.T) {
	member := builders.SandboxFrom(testMember).UID("u").RV(7).Obj()
	want := `{"metadata":{"labels":{"agents.x-k8s.io/sandbox-template-ref-hash":null},"resourceVersion":"7","uid":"u"}}`
	if got := string(HidePatch(member)); got != want {
		t.Errorf("HidePatch() = %s, want %s", got, want)
	}
	want = `{"metadata":{"labels":{"agents.x-k8s.io/sandbox-template-ref-hash":"` + builders.NameHash("python") + `"},"resourceVersion":"7","uid":"u"}}`
	if got := string(ShowPatch(member)); got != want {
		t.Errorf("ShowPatch() = %s, want %s", got, want)
	}
}

// The vectors are upstream's: NameHash("pool") and NameHash("my-template").
func TestNameHash(t *testing.T) {
	for name, want := range map[string]string{"pool": "91dd7983", "my-template": "aeae83fc"} {
		if got := NameHash(name); got != want {
			t.Errorf("NameHash(%q) = %s, want %s", name, got, want)
		}
	}
}
