package agentsandbox

import (
	"context"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// byUID finds claims.
type byUID struct {
	claims []*unstructured.Unstructured
	err    error
}

func (b byUID) Get(_ context.Context, ref liveread.Ref) (*unstructured.Unstructured, error) {
	for _, c := range b.claims {
		if string(c.GetUID()) == ref.Name && ref.GVR.Resource == Claims.Resource && c.GetNamespace() == ref.Namespace {
			return c, b.err
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	return nil, apierrors.NewNotFound(ref.GVR.GroupResource(), ref.Name)
}

func TestAControllerOfAnotherKindIsNoClaim(t *testing.T) {
	claim := builders.MakeClaim("ns", "c1").UID("uid-claim").Obj()
	later := builders.ClaimFrom(claim).UID("uid-later").Obj()
	pool := builders.MakePool("ns", "python").Annotation(settings.EnforcementKey, "enforce").Obj()
	nobody := builders.ControllerRef(claim)
	nobody.APIVersion, nobody.Kind, nobody.Name = "example.com/v1", "Nobody", "c9"
	given := builders.SandboxFrom(testMember).Owners(nobody).Obj()
	cases := map[string]struct {
		old    *unstructured.Unstructured
		listed []*unstructured.Unstructured
		stored []*unstructured.Unstructured
		failed error
		want   freshness.Reason
		// enforcement is what the claim's pool says.
		enforcement string
		wantErr     bool
	}{
		"a claim's UID":            {listed: []*unstructured.Unstructured{claim}, stored: []*unstructured.Unstructured{claim, pool}, want: freshness.OwnerMismatch, enforcement: "enforce"},
		"a member's, a claim's":    {old: testMember, listed: []*unstructured.Unstructured{claim}, stored: []*unstructured.Unstructured{claim}, want: freshness.OwnerMismatch},
		"no claim's":               {want: freshness.Fresh},
		"the claim has gone":       {listed: []*unstructured.Unstructured{claim}, want: freshness.Fresh},
		"the claim is another one": {listed: []*unstructured.Unstructured{claim}, stored: []*unstructured.Unstructured{later}, want: freshness.Fresh},
		"cannot be listed":         {failed: errors.New("etcd is away"), wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStore(tc.stored...)
			p := newPlatform(s, nil)
			p.ByUID = liveread.NewReader(byUID{tc.listed, tc.failed}, nil)
			op := admissionv1.Create
			if tc.old != nil {
				op = admissionv1.Update
			}
			w, _ := p.Classify(op, tc.old, given)
			f, err := p.Snapshot(t.Context(), w)
			if (err != nil) != tc.wantErr {
				t.Fatalf("Snapshot() error = %v, want error %t", err, tc.wantErr)
			}
			if tc.wantErr {
				return
			}
			if v := freshness.Judge(f.Snapshot); v.Reason != tc.want || f.Enforcement != tc.enforcement {
				t.Errorf("judged %s (%s), pool says %q, want %s, %q", v.Reason, v.Detail, f.Enforcement, tc.want, tc.enforcement)
			}
			if named := f.ClaimRef.Name == "c1"; named != (len(tc.stored) > 0) {
				t.Errorf("the claim is called %q", f.ClaimRef.Name)
			}
		})
	}
}
