package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/scenario"
)

const (
	// quietPool is a pool of no members in the guarded namespace, whose template never changes.
	quietPool = "quiet"
	// quietPrefix begins the names of the claims of that round.
	quietPrefix = "quiet-"
)

// quiet is the pool whose claims are cold starts.
func (p *play) quiet() scenario.Pool {
	return scenario.Pool{Name: quietPool, Template: quietPool, Image: p.image(0), Strategy: scenario.Recreate}
}

// coldStarts makes one more burst of claims in both namespaces, with no update before it:
// the guarded ones have to start cold, the others find warm members as ever. It returns
// the p50 of the cold ones, 0 when not all of them got ready in time.
func (p *play) coldStarts(ctx context.Context) (time.Duration, error) {
	err := p.both(func(s *side) error { return p.rest(ctx, s, p.image(p.rounds)) })
	if err != nil {
		return 0, err
	}
	names := scenario.Names(quietPrefix, size)
	err = p.both(func(s *side) error {
		pool := s.pool
		if s.ns == p.guarded {
			pool = p.quiet()
		}
		if err := s.ns.CreateClaims(ctx, pool, names...); err != nil {
			return err
		}
		return s.tolerated(ctx, s.ns.WaitClaims(ctx, p.timeout, names...))
	})
	if err != nil {
		return 0, err
	}
	judged, err := p.recording.Judge(ctx)
	if err != nil {
		return 0, err
	}
	return halfReady(judged.Claims, p.guarded.Name, quietPrefix), nil
}

// halfReady is after what time half of a burst of claims were ready; 0 when one was not.
func halfReady(claims []checker.ClaimRecord, namespace, prefix string) time.Duration {
	var ready []time.Duration
	for _, c := range claims {
		if c.Namespace != namespace || !strings.HasPrefix(c.Claim.Name, prefix) {
			continue
		}
		if c.ReadySeen.IsZero() {
			return 0
		}
		ready = append(ready, c.ReadySeen.Sub(c.CreatedSeen))
	}
	if len(ready) == 0 {
		return 0
	}
	slices.Sort(ready)
	return ready[len(ready)/2]
}

// coldLine says how much of the price is what any cold start takes: cold is what
// coldStarts returned, and not 0.
func coldLine(guarded row, cold time.Duration) string {
	return fmt.Sprintf("a cold start with no update before it took %s (p50): those after an update took %+.2f s",
		seconds(cold), (guarded.p50() - cold).Seconds())
}
