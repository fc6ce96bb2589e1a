package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/scenario"
)

const (
	// quietPool is a pool of no members in the guarded namespace, whose template never changes.
	quietPool = "quiet"
	// quietPrefix begins the names of its claims.
	quietPrefix = "quiet-"
)

// quiet is the pool whose claims are cold starts.
func (p *play) quiet() scenario.Pool {
	return scenario.Pool{Name: quietPool, Template: quietPool, Image: p.image(0), Strategy: scenario.Recreate}
}

// coldStarts makes as many bursts of claims in both namespaces as there were rounds, with
// no update before them: the guarded ones have to start cold, the others find warm
// members as ever. It returns the p50 of the cold ones, 0 when not all of them got ready
// in time.
func (p *play) coldStarts(ctx context.Context) (time.Duration, error) {
	for number := 1; number <= p.rounds; number++ {
		if err := p.quietRound(ctx, number); err != nil {
			return 0, err
		}
	}
	judged, err := p.recording.Judge(ctx)
	if err != nil {
		return 0, err
	}
	return halfReady(judged.Claims, p.guarded.Name, quietPrefix), nil
}

func (p *play) quietRound(ctx context.Context, number int) error {
	names := scenario.Names(fmt.Sprintf("%s%d-", quietPrefix, number), size)
	return p.inTurn(number, func(s *side) error {
		pool := s.pool
		if s.ns == p.guarded {
			pool = p.quiet()
		}
		if err := s.ns.CreateClaims(ctx, pool, names...); err != nil {
			return err
		}
		if err := s.tolerated(ctx, s.ns.WaitClaims(ctx, p.timeout, names...)); err != nil {
			return err
		}
		return p.rest(ctx, s, p.image(p.rounds))
	})
}

// halfReady is after what time half of the claims were ready; 0 when one was not.
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
	return checker.Percentile(ready, 50)
}

// coldLine says how much of the price is what any cold start takes: cold is what
// coldStarts returned, and not 0.
func coldLine(guarded row, cold time.Duration) string {
	return fmt.Sprintf("a cold start with no update before it took %s (p50): those after an update took %+.2f s",
		seconds(cold), (guarded.p50() - cold).Seconds())
}
