package webhooks

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/freshbind/freshbind/internal/bounded"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

const (
	// retryFor is how long a claim may try to take one member in vain for a fault
	// of its own. Its controller learns of the fault from its cache, mostly within
	// that time; when it does not, only another answer makes it give up.
	retryFor = time.Second
	// triesBytes bounds how many pairs of claim and member are remembered.
	triesBytes = 3 << 20
)

// RetryLimiter remembers since when claims have tried in vain. A claim of v1.0.3
// that was cold-started and then names a member as well is answered Conflict,
// and tries that one member for ever. A nil *RetryLimiter sets no limit.
type RetryLimiter struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	tries *bounded.Cache[pair, tries]
}

// NewRetryLimiter returns one that has seen no attempt.
func NewRetryLimiter(c clock.PassiveClock) *RetryLimiter {
	return &RetryLimiter{clock: c, tries: bounded.NewCache[pair, tries](triesBytes)}
}

// pair is a claim and a member that it wants.
type pair struct{ claim, member string }

// tries are the attempts of a claim to take a member, all in vain.
type tries struct {
	since time.Time
	// over is when the claim was first turned away; zero before.
	over time.Time
}

// exceeded reports whether the claim that is refused for its own fault has tried
// this member for too long. It stays so for as long again: a claim that is told
// that its member is gone looks, and tries once more, before it believes it
// (v1.0.3, extensions/controllers/sandboxclaim_controller.go,
// resolveAdoptionCompletion). Then everything begins anew.
func (p *RetryLimiter) exceeded(w platform.Write, v freshness.Verdict) bool {
	if p == nil || v.Allowed || w.Operation != freshness.Bind || v.Reason.Fault() != freshness.FaultClaim {
		return false
	}
	key, now := pair{w.Claim.UID, string(w.Judged().GetUID())}, p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	t, _ := p.tries.Get(key)
	switch {
	case t.since.IsZero(), !t.over.IsZero() && now.Sub(t.over) >= retryFor:
		t = tries{since: now}
	case t.over.IsZero() && now.Sub(t.since) >= retryFor:
		t.over = now
	}
	p.tries.Add(key, t, len(key.claim)+len(key.member))
	return !t.over.IsZero()
}
