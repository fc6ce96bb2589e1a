package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// In every release, whether its controllers see templates late or not: after each update
// come as many claims as the pool has members. None gets what is stale, each is ready, and in
// the end there is no member that nobody is given.
func TestClaimsRightAfterUpdates(t *testing.T) {
	for _, version := range upstream.Releases() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			for name, late := range map[string]bool{"late": true, "in-time": false} {
				t.Run(name, func(t *testing.T) { claimsRightAfterUpdates(t, releaseWorld(t, version), late) })
			}
		})
	}
}

func claimsRightAfterUpdates(t *testing.T, w *world, late bool) {
	const rounds, size = 2, 10
	s := w.enforced(t)
	before := s.turnedAway()
	p := s.pool(scenario.Pool{Replicas: size, Strategy: scenario.Recreate})
	claims := 0
	for n := range rounds {
		image := fmt.Sprintf("sandbox:v%d", n+2)
		met, see := s.turnedAway(), func() {}
		if late {
			see = s.hold(upstream.SandboxTemplates)
		}
		s.image(p, image)
		names := scenario.Names(fmt.Sprintf("c%d-", n), size)
		s.must(s.CreateClaims(t.Context(), p, names...))
		if late {
			s.eventually("a claim meets what is stale", func(context.Context) (string, bool) {
				away := s.turnedAway().Minus(met)
				return fmt.Sprintf("%+v", away), away.Repaired+away.Binds+away.ColdStarts > 0
			})
		}
		see()
		s.must(s.WaitClaims(t.Context(), within, names...))
		claims += len(names)
		s.full(p, image)
	}
	probe, err := s.Ghosts(t.Context(), p, "probe-")
	s.must(err)
	if len(probe.Ghosts) > 0 {
		t.Errorf("ready, shown and given to nobody: %v", probe.Ghosts)
	}
	sum := s.fresh(claims + probe.Claims)
	away := s.turnedAway().Minus(before)
	t.Logf("%d claims, %d warm, %d cold, ready after %.2f s (p50); %d cold starts repaired; refused: %d binds, %d cold starts, %d births",
		sum.Claims, sum.Warm, sum.Cold, time.Duration(sum.ReadyP50).Seconds(), away.Repaired, away.Binds, away.ColdStarts, away.Births)
}

// turnedAway is what Freshbind has denied and repaired so far.
func (s *stage) turnedAway() scenario.Refused {
	s.t.Helper()
	text, err := s.w.Guard.Metrics(s.t.Context())
	s.must(err)
	refused, err := scenario.ParseRefused(text)
	s.must(err)
	return refused
}
