package webhooks

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func TestRecentBinds(t *testing.T) {
	write := func(op freshness.Operation, claim, sandbox string) platform.Write {
		obj := builders.SandboxFrom(member).Name(sandbox).Obj()
		return platform.Write{Operation: op, Old: obj, New: obj, Claim: freshness.Owner{Kind: freshness.OwnedByClaim, UID: claim}}
	}
	bind := func(claim, sandbox string) platform.Write { return write(freshness.Bind, claim, sandbox) }
	indexed := func(_ context.Context, namespace, claim string) []string {
		return map[string][]string{"ns/u1": {"m0"}}[namespace+"/"+claim]
	}
	cases := map[string]struct {
		passed []platform.Write
		index  func(context.Context, string, string) []string
		asked  platform.Write
		want   []string
	}{
		"nothing yet":              {asked: bind("u1", "m1")},
		"bound before":             {passed: []platform.Write{bind("u1", "m1")}, asked: bind("u1", "m2"), want: []string{"m1"}},
		"to another claim":         {passed: []platform.Write{bind("u2", "m1")}, asked: bind("u1", "m2")},
		"before a cold start":      {passed: []platform.Write{bind("u1", "m1")}, asked: write(freshness.ColdStart, "u1", "c1"), want: []string{"m1"}},
		"the same twice":           {passed: []platform.Write{bind("u1", "m1"), bind("u1", "m1")}, asked: bind("u1", "m2"), want: []string{"m1"}},
		"the latest few":           {passed: []platform.Write{bind("u1", "a"), bind("u1", "b"), bind("u1", "c"), bind("u1", "d"), bind("u1", "e")}, asked: bind("u1", "m"), want: []string{"b", "c", "d", "e"}},
		"a cold start has a name":  {passed: []platform.Write{write(freshness.ColdStart, "u1", "c1")}, asked: bind("u1", "m1")},
		"a release tells no claim": {passed: []platform.Write{bind("u1", "m1")}, asked: write(freshness.Release, "u1", "m2")},
		"a birth is for no claim":  {asked: write(freshness.Birth, "", "m2")},
		"known to the cache only":  {index: indexed, asked: bind("u1", "m2"), want: []string{"m0"}},
		"nobody's in the cache":    {index: func(context.Context, string, string) []string { return []string{"m9"} }, asked: write(freshness.Birth, "", "m2")},
		"one often, another once":  {passed: []platform.Write{bind("u1", "b"), bind("u1", "a"), bind("u1", "a"), bind("u1", "a"), bind("u1", "a")}, asked: bind("u1", "m"), want: []string{"a", "b"}},
		"known to the cache":       {passed: []platform.Write{bind("u1", "m1"), bind("u1", "m0")}, index: indexed, asked: bind("u1", "m2"), want: []string{"m0", "m1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewRecentBinds(tc.index)
			for _, w := range tc.passed {
				g.note(w)
			}
			if diff := cmp.Diff(tc.want, g.hints(t.Context(), tc.asked)); diff != "" {
				t.Errorf("hints() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestNoMemoryNoHints(t *testing.T) {
	var g *RecentBinds
	w := platform.Write{Operation: freshness.Bind, Old: member, New: member, Claim: freshness.Owner{UID: "u"}}
	g.note(w)
	if got := g.hints(t.Context(), w); got != nil {
		t.Errorf("hints() = %v", got)
	}
}

// What was given a moment ago is in no cache yet: the snapshot has to look there.
func TestGuardLooksWhereTheClaimMayHaveASandbox(t *testing.T) {
	f := &fakePlatform{facts: facts(func(*platform.Facts) {})}
	g := &Guard{
		Platform: f, Modes: modes(t, settings.Enforce, nil), Metrics: NewMetrics(prometheus.NewRegistry()), Observer: &hints{},
		RecentBinds: NewRecentBinds(nil), Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0)), Timeout: time.Minute,
	}
	second := builders.MakeMember(pool, template).Name("python-def").Obj()
	g.Handle(t.Context(), bindRequest(t))
	if len(f.asked.MayHold) > 0 {
		t.Errorf("the first bind has %v to look for", f.asked.MayHold)
	}
	g.Handle(t.Context(), request(t, admissionv1.Update, second, builders.Bound(second, claim, template).Obj()))
	if diff := cmp.Diff([]string{"python-abc"}, f.asked.MayHold); diff != "" {
		t.Errorf("the second bind looks at (-want,+got):\n%s", diff)
	}
}

// What was denied, or only tried, was not given.
func TestGuardRemembersWhatItLetsPass(t *testing.T) {
	dead := facts(func(f *platform.Facts) { f.Pod.Deleting = true })
	cases := map[string]struct {
		facts  platform.Facts
		mode   settings.Mode
		dryRun bool
		want   []string
	}{
		"allowed":         {facts(func(*platform.Facts) {}), settings.Enforce, false, []string{"python-abc"}},
		"denied":          {dead, settings.Enforce, false, nil},
		"denied in audit": {dead, settings.Audit, false, []string{"python-abc"}},
		"a dry run":       {facts(func(*platform.Facts) {}), settings.Enforce, true, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakePlatform{facts: tc.facts}
			g := &Guard{
				Platform: f, Modes: modes(t, tc.mode, nil), Metrics: NewMetrics(prometheus.NewRegistry()), Observer: &hints{},
				RecentBinds: NewRecentBinds(nil), Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0)), Timeout: time.Minute,
			}
			req := bindRequest(t)
			req.DryRun = ptr.To(tc.dryRun)
			g.Handle(t.Context(), req)
			w, _ := f.Classify(admissionv1.Update, member, builders.Bound(member, claim, template).Obj())
			if diff := cmp.Diff(tc.want, g.RecentBinds.hints(t.Context(), w)); diff != "" {
				t.Errorf("remembered (-want,+got):\n%s", diff)
			}
		})
	}
}

// Who writes an owner reference chooses how long its UID is.
func TestWhatIsRememberedOfClaimsIsBoundedInBytes(t *testing.T) {
	g, p := NewRecentBinds(nil), NewRetryLimiter(testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	for i := range 200 {
		w := platform.Write{Operation: freshness.Bind, Old: member, New: member, Claim: freshness.Owner{UID: fmt.Sprint(i) + strings.Repeat("x", 100_000)}}
		g.note(w)
		p.exceeded(w, freshness.Verdict{Reason: freshness.ClaimHoldsAnother})
		if binds, tried := g.names.Bytes(), p.tries.Bytes(); binds > bindsBytes || tried > triesBytes {
			t.Fatalf("after %d claims %d and %d bytes are remembered", i+1, binds, tried)
		}
	}
	if g.names.Len() == 0 || p.tries.Len() == 0 {
		t.Error("nothing is remembered")
	}
}
