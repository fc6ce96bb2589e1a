package webhooks

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

const (
	// patience is how long a claim may try to take one member in vain for a fault
	// of its own. Its controller learns of the fault from its cache, mostly within
	// that time; when it does not, only another answer makes it give up.
	patience = time.Second
	// triesKept bounds how many pairs of claim and member are remembered.
	triesKept = 8192
)

// Patience remembers since when claims have tried in vain. A claim of v1.0.3
// that was cold-started and then names a member as well is answered Conflict,
// and tries that one member for ever. A nil *Patience has no end.
type Patience struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	since *lru.Cache
}

// NewPatience returns an empty memory.
func NewPatience(c clock.PassiveClock) *Patience {
	return &Patience{clock: c, since: lru.New(triesKept)}
}

// pair is a claim and a member that it wants.
type pair struct{ claim, member string }

// over reports whether the claim that is refused for its own fault has tried
// this member for too long. It then begins anew: a member is not given up twice
// in a row.
func (p *Patience) over(w platform.Write, v freshness.Verdict) bool {
	if p == nil || v.Allowed || w.Operation != freshness.Bind || v.Reason.Fault() != freshness.FaultClaim {
		return false
	}
	key := pair{w.Claim.UID, string(w.Judged().GetUID())}
	p.mu.Lock()
	defer p.mu.Unlock()
	since, known := p.since.Get(key)
	if !known {
		p.since.Add(key, p.clock.Now())
		return false
	}
	if p.clock.Since(since.(time.Time)) < patience {
		return false
	}
	p.since.Remove(key)
	return true
}
