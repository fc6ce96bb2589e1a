package pools

import (
	"time"

	"github.com/freshbind/freshbind/internal/freshness"
)

// rest is how a pool was found that had nothing left to do: as long as it is found
// the same, another plan would come to the same. Most events of a large pool, like
// the node that a Pod gets, are of that kind.
type rest struct {
	// pool and template are their versions.
	pool, template string
	roster         *roster
	version        int
	// fresh: a ready member of the revision in force was seen.
	fresh bool
	// until is when time alone changes that; zero for never.
	until time.Time
}

// restOf is how the pool is found now.
func restOf(s *poolState) rest {
	return rest{pool: s.pool.GetResourceVersion(), template: s.template.GetResourceVersion(), roster: s.roster, version: s.roster.version}
}

// rests reports whether nothing has changed that a plan depends on since one had
// nothing to do.
func (m *poolRecord) rests(s *poolState) bool {
	is := restOf(s)
	is.fresh, is.until = m.rest.fresh, m.rest.until
	if is != m.rest || !is.until.IsZero() && !s.Now.Before(is.until) {
		return false
	}
	if is.fresh {
		m.rollout.Fresh = s.Now
	}
	return true
}

// wait is how long it lasts; 0 for ever.
func (r rest) wait(now time.Time) time.Duration {
	if r.until.IsZero() {
		return 0
	}
	return r.until.Sub(now)
}

// settle notes that a plan was carried out which has the pool looked at again after
// that time. What was written is to be seen first, and what somebody else made of it.
func (m *poolRecord) settle(s *poolState, plan freshness.Plan, again time.Duration) {
	m.rest = rest{}
	idle := len(plan.Delete)+len(plan.Hide)+len(plan.Show)+plan.Waiting+plan.Rollout.Replacing.Awaited() == 0
	remembers := len(m.leaving)+len(m.failures)+len(m.onDrainingNode) > 0 || s.Now.Sub(m.writtenAt) < readBack
	if !idle || remembers || s.bare || s.withheld || plan.Rollout.State != freshness.Complete {
		return
	}
	m.rest = restOf(s)
	m.rest.fresh = plan.Rollout.Fresh.Equal(s.Now)
	if again > 0 {
		m.rest.until = s.Now.Add(again)
	}
}
