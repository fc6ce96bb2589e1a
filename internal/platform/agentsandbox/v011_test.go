package agentsandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/platformtest"
)

// v0.1.1 mounts no token unless a template asks for it, and leaves DNS alone. Its API
// server fills nothing in that says who manages the network policy.
func TestSandboxesOfV011(t *testing.T) {
	template := func(image string) *unstructured.Unstructured {
		return builders.MakeTemplate("ns", "python").APIVersion(builders.V1Alpha1).Unset("spec", "networkPolicyManagement").Image(image).Obj()
	}
	old, live := template("sandbox:v1"), template("sandbox:v2")
	claim := builders.MakeClaimV1Alpha1("ns", "c1", "python", "").Obj()
	made := func(template *unstructured.Unstructured) *builders.Sandbox {
		return builders.MakeColdStart(claim, template)
	}
	// newer is the template with the CRDs of v0.2.1.
	newer := builders.TemplateFrom(live).Set("Managed", "spec", "networkPolicyManagement").Obj()
	repaired := made(live).PodSpec([]any{map[string]any{"name": "c", "image": "sandbox:v2", "resources": map[string]any{}}}, "containers").
		Annotation(settings.RepairedKey, revisionOf(t, old)+" -> "+revisionOf(t, live))
	cases := map[string]struct {
		template *unstructured.Unstructured
		sandbox  *builders.Sandbox
		want     freshness.Reason
		stored   *builders.Sandbox
	}{
		"current":                 {live, made(live), freshness.Fresh, made(live)},
		"late":                    {live, made(old), freshness.StaleRevision, repaired},
		"in a member of the pool": {live, made(live).PodName("python-abc"), freshness.Fresh, made(live).PodName("python-abc")},
		"somebody adds DNS":       {live, made(newer), freshness.UnknownRevision, made(newer)},
		"the CRDs are newer":      {newer, made(live), freshness.UnknownRevision, made(live)},
		"somebody mounts a token": {live, made(live).PodSpec(true, "automountServiceAccountToken"), freshness.UnknownRevision, made(live).PodSpec(true, "automountServiceAccountToken")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStore(claim, tc.template, released(barePod(live), claim))
			s.version = "v1alpha1"
			p := &Platform{Reader: liveread.NewReader(s, nil), Resolver: s, History: history{live, old}, Defaults: settings.Defaults{Strategy: freshness.Recreate}}
			w, _ := p.Classify(admissionv1.Create, nil, tc.sandbox.Obj())
			f, err := p.Snapshot(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			if v := freshness.Judge(f.Snapshot); v.Reason != tc.want {
				t.Errorf("judged %s (%s), want %s", v.Reason, v.Detail, tc.want)
			}
			got, _ := platformtest.Rewrite(t, p, tc.sandbox.Obj())
			if diff := cmp.Diff(tc.stored.Obj(), got); diff != "" {
				t.Errorf("stored (-want,+got):\n%s", diff)
			}
		})
	}
}
