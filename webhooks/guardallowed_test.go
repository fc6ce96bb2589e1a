package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// Whether the API server has heard the answer is for others to find out.
func TestWhoIsToldThatAClaimGetsASandbox(t *testing.T) {
	fresh, cold := func(*platform.Facts) {}, builders.MakeColdStart(claim, template).Obj()
	noPod := func(f *platform.Facts) { f.Pod = nil }
	dead := func(f *platform.Facts) { f.Pod.Deleting = true }
	bound := builders.Bound(member, claim, template).Obj()
	cases := map[string]struct {
		change   func(*platform.Facts)
		old, obj *unstructured.Unstructured
		mode     settings.Mode
		dryRun   bool
		want     []string
	}{
		"a bind":          {fresh, member, bound, settings.Enforce, false, []string{"ns/c1 " + string(claim.GetUID())}},
		"a cold start":    {fresh, nil, cold, settings.Enforce, false, []string{"ns/c1 " + string(claim.GetUID())}},
		"a birth":         {noPod, nil, member, settings.Enforce, false, nil},
		"a refused bind":  {dead, member, bound, settings.Enforce, false, nil},
		"an audited bind": {fresh, member, bound, settings.Audit, false, nil},
		"a dry run":       {fresh, member, bound, settings.Enforce, true, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			g := guardOn(t, &fakePlatform{facts: facts(tc.change)}, tc.mode, &hints{})
			g.Allowed = func(namespace, name string, uid types.UID) { got = append(got, namespace+"/"+name+" "+string(uid)) }
			op := admissionv1.Update
			if tc.old == nil {
				op = admissionv1.Create
			}
			req := request(t, op, tc.old, tc.obj)
			req.DryRun = ptr.To(tc.dryRun)
			g.Handle(t.Context(), req)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("told (-want,+got):\n%s", diff)
			}
		})
	}
}
