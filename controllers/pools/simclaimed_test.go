package pools

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// Claims take 3.6 members a second, which take 5 seconds to start: 18 are missing all
// the time because of claims alone, and max-unavailable is 15.
const (
	claimedReplicas, claimedMost = 60, 15
	claimedStarts                = 5 * time.Second
	// claimedEvery is how often something happens, claimedPercent how much of a claim does.
	claimedEvery, claimedPercent = 100 * time.Millisecond, 36
	// claimedDeadline is short, so that it is seen when a rollout is not taken to progress.
	claimedDeadline = 2 * claimedStarts
	// claimedSteps is how many steps a rollout of that pool takes.
	claimedSteps = claimedReplicas / claimedMost
)

// newClaimed is a simulation of one pool in which nothing fails.
func newClaimed() *simulation {
	s := &simulation{seed: 1, calm: true, reducer: platform.NewReducer(agentsandbox.Objects{}), clock: clocktesting.NewFakePassiveClock(now), budget: 50}
	s.draw(0)
	s.pace = PaceOf(s.budget, s.clock)
	t := &simTemplate{}
	s.templates = []*simTemplate{t}
	s.edit(t, "python")
	p := &simPool{strategy: freshness.RollingUpdate, template: t, born: t.live}
	p.stored = builders.MakePool("ns", "python").Template("python").Replicas(claimedReplicas).Strategy("OnReplenish").
		Annotation(settings.StrategyKey, string(freshness.RollingUpdate)).Annotation(settings.MaxUnavailableKey, "25%").
		Annotation(settings.ProgressDeadlineKey, claimedDeadline.String()).RV(1).Obj()
	p.key = client.ObjectKeyFromObject(p.stored)
	s.pools = []*simPool{p}
	s.store(p, p.stored)
	s.end()
	for range claimedReplicas {
		s.bear(p).starts = s.clock.Now()
	}
	s.end()
	s.started()
	s.leader, s.follower = s.newProcess(), s.newProcess()
	s.leader.lead()
	return s
}

// started has everything ready that has had the time to start.
func (s *simulation) started() {
	for _, m := range s.pools[0].members {
		if m.ready.IsZero() && !m.starts.After(s.clock.Now()) {
			m.ready = s.clock.Now().Truncate(time.Second)
			s.written(m, nil)
		}
	}
	s.end()
	s.settleAvailability()
}

// claimedAt lets some time pass: claims go on, and the platform makes what is missing.
// Caches show it all each time that they are so late.
func (s *simulation) claimedAt(tick int, late time.Duration) {
	s.draw(uint64(tick) + 1)
	p := s.pools[0]
	s.passes(claimedEvery)
	s.started()
	if tick*claimedPercent/100 > (tick-1)*claimedPercent/100 {
		s.claims()
	}
	for of := range simStreams {
		if tick%int(late/claimedEvery) == 0 {
			s.leader.show(of, 1<<20)
		}
	}
	s.reconciles()
	p.born = p.template.live
	for range p.replicas() - len(p.members) {
		s.bear(p).starts = s.clock.Now().Add(claimedStarts)
	}
	s.end()
}

// A busy pool is rolled out, too. New members count for the rollout even when claims take
// them as soon as they are ready.
func TestARolloutCompletesWhileClaimsGoOn(t *testing.T) {
	cases := map[string]struct{ late time.Duration }{
		"caches show everything at once":        {claimedEvery},
		"caches show everything a second later": {time.Second},
		// Members come, get ready and are claimed before the controller sees any of it.
		"caches are later than members start": {claimedStarts + 2*time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newClaimed()
			s.mu.Lock()
			defer s.mu.Unlock()
			tick := 0
			for range int(4 * claimedStarts / claimedEvery) {
				tick++
				s.claimedAt(tick, tc.late)
			}
			if missing := s.pools[0].missing(); missing <= claimedMost {
				t.Fatalf("claims alone keep %d members missing, want more than max-unavailable", missing)
			}
			s.edit(s.pools[0].template, "python")
			s.rollsOut(t, tick, tc.late)
		})
	}
}

// rollsOut has the rollout come to its end, and judges it.
func (s *simulation) rollsOut(t *testing.T, tick int, late time.Duration) {
	t.Helper()
	p, edited, claims, most := s.pools[0], s.clock.Now(), s.stats.claims, 0
	// Each step waits for new members, and for caches to show that they are there and
	// that they are ready. Claims make it slower, but not twice as slow.
	long := 2 * claimedSteps * (claimedStarts + 2*late)
	for {
		tick++
		s.claimedAt(tick, late)
		most = max(most, p.replacing(byRollout))
		annotations := p.stored.GetAnnotations()
		state, took := annotations[settings.RolloutStateKey], s.clock.Now().Sub(edited)
		status, _ := platform.ParseRolloutStatus(annotations[settings.RolloutStatusKey])
		switch {
		case s.broken != "":
			t.Fatalf("after %s: %s", took, s.broken)
		case state == string(freshness.Failed), took > long:
			t.Fatalf("%s after %s (%s), want Complete within %s: %d of %d members are updated, replacing %+v",
				state, took, annotations[settings.RolloutReasonKey], long, status.UpdatedReplicas, p.replicas(), status.Replacing)
		case state == string(freshness.Complete) && status.UpdateRevision == p.template.live.hash:
			served, asked := s.stats.claims-claims, int(took/claimedEvery)*claimedPercent/100
			t.Logf("Complete after %s: %d of %d claims got a member, at most %d were deleted and not replaced", took, served, asked, most)
			if served <= asked/2 {
				t.Errorf("%d of %d claims got a member: the rollout was not one of a busy pool", served, asked)
			}
			if most == 0 || most > claimedMost {
				t.Errorf("%d members were deleted and not replaced at once, want some and at most %d", most, claimedMost)
			}
			return
		}
	}
}
