package pools

import (
	"math"
	"time"

	"k8s.io/utils/clock"
)

// replacementTime is how long each replacement counts at the least, however soon the
// new member is ready: what is over sooner begins the next one sooner, and a rollout of
// members that start at once would take as much of the API server as there is.
const replacementTime = 5 * time.Second

// Pace is how fast members may be deleted over all pools: Burst at once, and then one
// each Every. The zero Pace bounds nothing.
type Pace struct {
	Every time.Duration
	Burst int
	Clock clock.PassiveClock
}

// PaceOf is the pace at which the whole budget goes once in replacementTime.
func PaceOf(budget int, c clock.PassiveClock) Pace {
	return Pace{Every: replacementTime / time.Duration(budget), Burst: budget, Clock: c}
}

// pace counts deletes. rate.Limiter of golang.org/x/time takes none back that was not
// carried out.
type pace struct {
	Pace
	// settled is when as many may be deleted at once as ever.
	settled time.Time
}

// owed is how long it takes until that. A clock that was set back makes it no longer
// than it ever is.
func (p *pace) owed() time.Duration {
	now := p.Clock.Now()
	owed := min(max(0, p.settled.Sub(now)), p.Every*time.Duration(p.Burst))
	p.settled = now.Add(owed)
	return owed
}

// free is how many members may be deleted now, and wait how long it takes until it is
// more; 0 when it will not be. When fewer than a tenth of the burst may, none may: a large
// pool that deletes one at a time is looked at, and written to, once for each.
func (p *pace) free() (n int, wait time.Duration) {
	if p.Every <= 0 {
		return math.MaxInt, 0
	}
	owed, least := p.owed(), max(1, p.Burst/10)
	// One that is owed in part may not go.
	used := int((owed + p.Every - 1) / p.Every)
	if p.Burst-used < least {
		return 0, owed - time.Duration(p.Burst-least)*p.Every
	}
	return p.Burst - used, owed - time.Duration(max(0, used-1))*p.Every
}

// take notes n deletes; fewer than 0 were not carried out after all.
func (p *pace) take(n int) {
	if p.Every > 0 {
		p.settled = p.Clock.Now().Add(p.owed() + time.Duration(n)*p.Every)
	}
}

// exhaust has nothing deleted at once.
func (p *pace) exhaust() {
	if p.Every > 0 {
		p.settled = p.Clock.Now().Add(time.Duration(p.Burst) * p.Every)
	}
}
