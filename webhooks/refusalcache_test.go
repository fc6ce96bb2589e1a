package webhooks

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func TestRefusalCache(t *testing.T) {
	stale, current := freshness.Verdict{Reason: freshness.StaleRevision, Detail: "image"}, freshness.Verdict{Allowed: true}
	mine, other := platform.Question{1}, platform.Question{2}
	cases := map[string]struct {
		noted freshness.Verdict
		asked platform.Question
		after time.Duration
		// twice: somebody has asked before.
		twice bool
		want  bool
	}{
		"at once":           {stale, mine, 0, false, true},
		"a moment later":    {stale, mine, refusalKeptFor - 1, false, true},
		"too late":          {stale, mine, refusalKeptFor, false, false},
		"a second time":     {stale, mine, 0, true, false},
		"something else":    {stale, other, 0, false, false},
		"what is allowed":   {current, mine, 0, false, false},
		"allowed, too late": {current, mine, refusalKeptFor, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := testingclock.NewFakePassiveClock(time.Unix(0, 0))
			f := NewRefusalCache(c)
			f.note(mine, tc.noted)
			c.SetTime(c.Now().Add(tc.after))
			if tc.twice {
				f.take(tc.asked)
			}
			got, ok := f.take(tc.asked)
			if ok != tc.want || ok && got != tc.noted {
				t.Errorf("take() = %v, %t, want %t", got, ok, tc.want)
			}
		})
	}
}

func TestRefusalCacheIsBoundedInBytes(t *testing.T) {
	f := NewRefusalCache(testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	for i := range 10_000 {
		f.note(platform.Question{byte(i), byte(i >> 8)}, freshness.Verdict{Detail: strings.Repeat("x", 1000)})
	}
	if n := f.refusals.Bytes(); n > refusalBytes || n < refusalBytes/2 {
		t.Errorf("%d bytes are remembered, want up to %d", n, refusalBytes)
	}
	var none *RefusalCache
	none.note(platform.Question{}, freshness.Verdict{})
	if _, ok := none.take(platform.Question{}); ok {
		t.Error("nobody predicts something")
	}
}

// A refusal that was predicted is answered without a read; what is let through is
// read for whatever was predicted.
func TestGuardAnswersAKnownRefusal(t *testing.T) {
	cold := builders.MakeColdStart(claim, template).Obj()
	stale := freshness.Verdict{Reason: freshness.StaleRevision, Found: "v1-old", Expected: "v1-new", Detail: "image"}
	f := &fakePlatform{err: errors.New("nothing was to be read")}
	w, _ := f.Classify(admissionv1.Create, nil, cold)
	var h hints
	g := guardOn(t, f, settings.Audit, &h)
	g.KnownRefusals = NewRefusalCache(g.Clock)
	s := &Stamp{
		Revisions: fakeRevisions{refused: &stale, question: f.Question(w)}, Modes: modes(t, settings.Enforce, nil), Timeout: time.Minute, KnownRefusals: g.KnownRefusals,
	}
	s.Handle(t.Context(), request(t, admissionv1.Create, nil, cold))

	// The API server has stamped it meanwhile, and given it an identity.
	created := builders.SandboxFrom(cold).Label(settings.StampKey, "v1-old").UID("uid-new").Generation(1).Created(time.Unix(1, 0)).Obj()
	resp := g.Handle(t.Context(), request(t, admissionv1.Create, nil, created))
	if resp.Allowed || f.asked.New != nil {
		t.Errorf("allowed %t, read for %v; want a refusal that nothing is read for", resp.Allowed, f.asked.New)
	}
	want := map[string]string{"verdict": "deny", "reason": "StaleRevision", "mode": "enforce", "found": "v1-old", "expected": "v1-new"}
	if diff := cmp.Diff(want, resp.AuditAnnotations); diff != "" {
		t.Errorf("audit annotations (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"enforce c1 StaleRevision "}, h.denied); diff != "" {
		t.Errorf("told (-want,+got):\n%s", diff)
	}
	if g.Handle(t.Context(), request(t, admissionv1.Create, nil, created)); f.asked.New == nil {
		t.Error("the second time nothing is read, too")
	}
}

// Where nothing is denied nothing is predicted.
func TestNoRefusalIsKeptInModeAudit(t *testing.T) {
	f := NewRefusalCache(testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	s := &Stamp{
		Revisions: fakeRevisions{refused: &freshness.Verdict{Reason: freshness.StaleRevision}}, Modes: modes(t, settings.Audit, nil), Timeout: time.Minute, KnownRefusals: f,
	}
	s.Handle(t.Context(), request(t, admissionv1.Create, nil, builders.MakeColdStart(claim, template).Obj()))
	if _, ok := f.take(platform.Question{}); ok {
		t.Error("a refusal is predicted")
	}
}

// Nobody predicts what becomes of a bind.
func TestABindIsReadForWhateverIsKnown(t *testing.T) {
	f := &fakePlatform{facts: facts(func(*platform.Facts) {})}
	w, _ := f.Classify(admissionv1.Update, member, builders.Bound(member, claim, template).Obj())
	g := guardOn(t, f, settings.Enforce, &hints{})
	g.KnownRefusals = NewRefusalCache(g.Clock)
	g.KnownRefusals.note(f.Question(w), freshness.Verdict{Reason: freshness.StaleRevision})
	if resp := g.Handle(t.Context(), bindRequest(t)); !resp.Allowed || f.asked.New == nil {
		t.Errorf("allowed %t, read for %v: %v", resp.Allowed, f.asked.New, resp.Result)
	}
}
