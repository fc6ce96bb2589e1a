package pools

import (
	"time"

	"github.com/freshbind/freshbind/internal/freshness"
)

// offers are how long after a template changed its fresh members are offered
// once more. Upstream's claim controller drops members that differ from the
// template it sees, and never looks at them again when theirs returns
// (v1.0.3, extensions/controllers/sandboxclaim_controller.go, getCandidate).
var offers = []time.Duration{2 * time.Second, 10 * time.Second}

// offerAgain offers members that were there before the template changed and
// are fresh all the same. It returns when to come back, 0 for never.
func (p *Controller) offerAgain(m *poolRecord, s *poolState) time.Duration {
	if m.changed.IsZero() || m.offered == len(offers) {
		return 0
	}
	if wait := m.changed.Add(offers[m.offered]).Sub(s.Now); wait > 0 {
		return wait
	}
	for i, state := range s.Members {
		if state.Class == freshness.Current && state.Shown && !state.Leaving && !state.ReadySince.IsZero() &&
			state.Created.Before(m.changed) {
			p.refused.note(refusalOf(s.members[i]), freshness.FaultNobody)
		}
	}
	if m.offered++; m.offered == len(offers) {
		return 0
	}
	return m.changed.Add(offers[m.offered]).Sub(s.Now)
}
