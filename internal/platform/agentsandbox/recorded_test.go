package agentsandbox

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// recorded is a history of what it says, and no more.
type recorded []platform.Recorded

func (r recorded) Revisions(context.Context, *unstructured.Unstructured) ([]platform.Recorded, error) {
	return r, nil
}

// Of some revisions only digests are kept, and some are not understood: a cold start, and
// a bare Pod, are compared with the others.
func TestRevisionsThatAreRecordedInPart(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj()
	old := builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()
	claim := builders.MakeClaim("ns", "c1").Obj()
	hash := func(template *unstructured.Unstructured) string { return revisionOf(t, template) }
	rendered, err := RenderMember(old)
	if err != nil {
		t.Fatal(err)
	}
	all := recorded{
		{Hash: "v1-broken", Template: builders.TemplateFrom(old).Unset("spec", "podTemplate").Obj()},
		{Hash: "v1-digests", Rendered: rendered},
		{Hash: hash(old), Template: old, Rendered: rendered},
	}
	bare := barePod(old)
	start := builders.MakeColdStart(claim, old)
	for name, tc := range map[string]struct {
		obj  *unstructured.Unstructured
		want []string
	}{
		"a cold start":              {start.Obj(), []string{"v1-digests", hash(old)}},
		"a member":                  {builders.MakeMember(testPool, old).Name("python-abc").Obj(), []string{"v1-broken", "v1-digests", hash(old)}},
		"a bare Pod":                {bare, []string{hash(old)}},
		"a start in what was a Pod": {builders.SandboxFrom(start.Obj()).PodName("python-abc").Obj(), []string{"v1-digests", hash(old)}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlatform(newStore(claim, testPool, template, released(bare, claim)), nil)
			p.History = all
			w, _ := p.Classify(admissionv1.Create, nil, tc.obj)
			f, err := p.Snapshot(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, k := range f.Known {
				got = append(got, k.Hash)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("compared with (-want,+got):\n%s", diff)
			}
			if v := freshness.Judge(f.Snapshot); f.Plain != nil && len(f.Plain.Known) != 1 {
				t.Errorf("without secure defaults compared with %d revisions, want 1; judged %s", len(f.Plain.Known), v.Reason)
			}
		})
	}
}

// What enforces is asked for only of a member, or of what a claim takes.
func TestWhatNoPoolHasIsEnforcedByBindsOnly(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").Obj()
	claim := builders.MakeClaim("ns", "c1").Obj()
	p := newPlatform(newStore(claim, template), nil)
	for name, obj := range map[string]*unstructured.Unstructured{
		"a birth":      builders.MakeMember(testPool, template).Label(settings.EnforcementKey, "enforce").Obj(),
		"a cold start": builders.MakeColdStart(claim, template).Label(settings.EnforcementKey, "enforce").Obj(),
	} {
		w, _ := p.Classify(admissionv1.Create, nil, obj)
		if f, err := p.Snapshot(t.Context(), w); err != nil || f.Enforcement != "" {
			t.Errorf("%s says itself that it is enforced: %q, error %v", name, f.Enforcement, err)
		}
	}
}

// Without floors for strategies nobody reads the namespace of a bare Pod that is looked at.
func TestBarePodsThatAreInspectedReadNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		template := builders.MakeTemplate("ns", "python").Obj()
		s := newStore(template)
		v, err := newPlatform(s, history{template}).InspectBarePod(t.Context(), testPool, template, barePod(template))
		synctest.Wait()
		if err != nil || v.Reason != freshness.Fresh || len(s.read) > 0 {
			t.Errorf("judged %s, error %v, read %v", v.Reason, err, s.read)
		}
	})
}
