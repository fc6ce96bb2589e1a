package webhooks

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func TestRetryLimiter(t *testing.T) {
	pool, template := builders.MakePool("ns", "python").Obj(), builders.MakeTemplate("ns", "python").Obj()
	bind := func(claim, member string) platform.Write {
		return platform.Write{
			Operation: freshness.Bind, Claim: freshness.Owner{UID: claim},
			Old: builders.MakeMember(pool, template).UID(member).Obj(),
		}
	}
	cold := bind("c", "m")
	cold.Operation = freshness.ColdStart
	type try struct {
		after  time.Duration
		write  platform.Write
		reason freshness.Reason
		want   bool
	}
	holds := freshness.ClaimHoldsAnother
	cases := map[string][]try{
		"in time": {{0, bind("c", "m"), holds, false}, {retryFor - 1, bind("c", "m"), holds, false}},
		"for too long, also when it looks again, and from then anew": {
			{0, bind("c", "m"), holds, false}, {retryFor, bind("c", "m"), holds, true}, {2*retryFor - 1, bind("c", "m"), holds, true},
			{2 * retryFor, bind("c", "m"), holds, false}, {3*retryFor - 1, bind("c", "m"), holds, false}, {3 * retryFor, bind("c", "m"), holds, true},
		},
		"another member":                    {{0, bind("c", "m"), holds, false}, {retryFor, bind("c", "n"), holds, false}},
		"another claim":                     {{0, bind("c", "m"), holds, false}, {retryFor, bind("d", "m"), holds, false}},
		"the member's fault is answered so": {{0, bind("c", "m"), freshness.StaleRevision, false}, {retryFor, bind("c", "m"), freshness.StaleRevision, false}},
		"a state that passes is waited for": {{0, bind("c", "m"), freshness.PodNotYet, false}, {retryFor, bind("c", "m"), freshness.PodNotYet, false}},
		"a cold start is another write":     {{0, cold, holds, false}, {retryFor, cold, holds, false}},
		"an allowed one ends nothing":       {{0, bind("c", "m"), holds, false}, {retryFor, bind("c", "m"), freshness.Fresh, false}},
	}
	for name, tries := range cases {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(0, 0)
			c := testingclock.NewFakePassiveClock(start)
			p := NewRetryLimiter(c)
			for i, tc := range tries {
				c.SetTime(start.Add(tc.after))
				got := p.exceeded(tc.write, freshness.Verdict{Reason: tc.reason, Allowed: tc.reason == freshness.Fresh})
				if got != tc.want {
					t.Errorf("try %d: over() = %t, want %t", i, got, tc.want)
				}
			}
		})
	}
}

// A claim that holds a sandbox and insists on a member is turned away from it
// after a while; the member is offered to others as before.
func TestAClaimThatInsistsIsTurnedAway(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").Obj()
	member := builders.MakeMember(builders.MakePool("ns", "python").Obj(), template).Obj()
	bound := builders.Bound(member, claim, template).Obj()
	var h hints
	f := &fakePlatform{facts: facts(func(f *platform.Facts) { f.Held = []string{"c1"} })}
	c := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	g := &Guard{
		Platform: f, Modes: modes(t, settings.Enforce, nil), Retries: NewRetryLimiter(c),
		Metrics: NewMetrics(prometheus.NewRegistry()), Observer: &h, Clock: c, Timeout: time.Minute,
	}
	var codes []int32
	for _, after := range []time.Duration{0, retryFor / 2, retryFor} {
		c.SetTime(time.Unix(0, 0).Add(after))
		codes = append(codes, g.Handle(t.Context(), request(t, "UPDATE", member, bound)).Result.Code)
	}
	if diff := cmp.Diff([]int32{http.StatusConflict, http.StatusConflict, http.StatusNotFound}, codes); diff != "" {
		t.Errorf("answers (-want,+got):\n%s", diff)
	}
	if len(h.refused) != 3 {
		t.Errorf("%d hints that the member was refused, want one each time", len(h.refused))
	}
}

// What was let through, or could not be decided, was no try in vain.
func TestWhatIsNotRefusedIsNoTry(t *testing.T) {
	holds := facts(func(f *platform.Facts) { f.Held = []string{"c1"} })
	broken := errors.New("etcd is away")
	for name, first := range map[string]func(*Guard) admission.Response{
		"undecided": func(g *Guard) admission.Response {
			live := g.Modes.Live
			defer func() { g.Modes.Live = live }()
			g.Modes.Live = func(context.Context, string) (map[string]string, error) { return nil, broken }
			return g.Handle(t.Context(), bindRequest(t))
		},
		"let through": func(g *Guard) admission.Response {
			w, _ := g.Platform.Classify("UPDATE", member, builders.Bound(member, claim, template).Obj())
			g.Retries.exceeded(w, freshness.Verdict{Allowed: true, Reason: freshness.ClaimHoldsAnother})
			return admission.Errored(http.StatusInternalServerError, broken)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := testingclock.NewFakePassiveClock(time.Unix(0, 0))
			g := guard(&fakePlatform{facts: holds}, modes(t, settings.Enforce, nil))
			g.Retries = NewRetryLimiter(c)
			if resp := first(g); resp.Result.Code != http.StatusInternalServerError {
				t.Fatalf("answered %v", resp.Result)
			}
			c.SetTime(c.Now().Add(retryFor))
			if resp := g.Handle(t.Context(), bindRequest(t)); resp.Result.Code != http.StatusConflict {
				t.Errorf("answered %v, want a conflict", resp.Result)
			}
		})
	}
}
