package pools

import (
	"fmt"
	"slices"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
)

// onlooker sees everything at once, and as it is: each gap in a pool that has to be
// filled, the one that is open for the longest first, and who left it. Whatever of
// the revision in force becomes available closes that one. A member that is there,
// and old, and not available, has a gap of its own until it is deleted.
type onlooker struct{ gaps []by }

// by is who left a gap.
type by string

const (
	// byOthers: a claim took it, the platform deleted it, or it was never there.
	byOthers by = "other"
	// byRollout: the controller deleted a member that was available.
	byRollout by = "rollout"
	// byCleaning: it deleted one that was not.
	byCleaning by = "cleaning"
)

// replacing is how many gaps of those kinds there are in a pool.
func (p *simPool) replacing(which ...by) int {
	n := 0
	for _, g := range p.account.gaps {
		if slices.Contains(which, g) {
			n++
		}
	}
	return n
}

// missing is how many members are not available that should be.
func (p *simPool) missing() int {
	n := p.replicas()
	for _, m := range p.members {
		if m.available {
			n--
		}
	}
	return max(n, 0)
}

// open is how many gaps there have to be.
func (p *simPool) open() int {
	n := p.missing()
	for _, m := range p.members {
		if !m.available && !m.leaving && !m.current() {
			n--
		}
	}
	return max(n, 0)
}

// trim has as many gaps as there have to be. Births fill the oldest ones first, so
// that members which were never available, and are old now, stand in those: nobody
// waits for these gaps before the members are deleted, which opens them anew.
func (o *onlooker) trim(p *simPool) {
	want := p.open()
	if over := len(o.gaps) - want; over > 0 {
		o.gaps = slices.Clone(o.gaps[over:])
	}
	for len(o.gaps) < want {
		o.gaps = append(o.gaps, byOthers)
	}
}

// leaves notes that a member is not available any more, or cannot become so.
func (o *onlooker) leaves(m *simMember, who by) {
	if m.available || who == byCleaning {
		m.available = false
		o.gaps = append(o.gaps, who)
	}
	o.trim(m.pool)
}

// taken notes that a claim or the platform took a member. One that was ready has
// done what it was made for, however short it was.
func (o *onlooker) taken(m *simMember) {
	if !m.available && !m.ready.IsZero() && m.current() && len(o.gaps) > 0 {
		o.gaps = append(slices.Clone(o.gaps[1:]), byOthers)
	}
	o.leaves(m, byOthers)
}

// settleAvailability notes what time has made available.
func (s *simulation) settleAvailability() {
	for _, p := range s.pools {
		for _, m := range p.members {
			if !m.available && !m.leaving && !m.ready.IsZero() && !m.ready.Add(p.minReady).After(s.clock.Now()) {
				m.available = true
				p.account.trim(p)
				s.logf("%s is available; gaps of %s: %v", m.name, p.key.Name, p.account.gaps)
			}
		}
	}
}

func (s *simulation) breaks(format string, args ...any) {
	if s.broken == "" {
		s.promise, s.broken = format, fmt.Sprintf(format, args...)
		s.logf("BROKEN: %s", s.broken)
	}
}

// deleted judges a delete of the controller's.
func (s *simulation) deleted(m *simMember, current bool) {
	p, available := m.pool, m.available
	who := byCleaning
	if available {
		who = byRollout
	}
	before := p.replacing(byRollout, byCleaning)
	p.account.leaves(m, who)
	s.stats.deletes++
	s.logf("%s is deleted by the controller; gaps of %s: %v", m.name, p.key.Name, p.account.gaps)
	if current {
		s.breaks("member %s of the revision in force was deleted", m.name)
	}
	if p.paused() || p.strategy == freshness.OnReplenish && m.version.template.GetName() == agentsandbox.TemplateOf(p.stored) {
		s.breaks("member %s was deleted from a pool that is paused or does not roll", m.name)
	}
	s.paced()
	most := settings.Pool(p.stored.GetAnnotations()).MaxUnavailable(p.replicas())
	if n := p.replacing(byRollout); p.strategy == freshness.RollingUpdate && available && n > most {
		s.breaks("%d members of pool %s are deleted and not replaced, max-unavailable is %d", n, p.key.Name, most)
	}
	all := 0
	for _, o := range s.pools {
		if !s.leader.stalled(o) {
			all += o.replacing(byRollout, byCleaning)
		}
	}
	if all > s.budget && p.replacing(byRollout, byCleaning) > before && !s.over && !s.modeChanges {
		for _, o := range s.pools {
			s.logf("pool %s replaces %d, and the controller thinks %+v", o.key.Name, o.replacing(byRollout, byCleaning), s.leader.controller.budget.accounts[o.stored.GetUID()])
		}
		s.breaks("%d members of all pools are in replacement, the budget is %d", all, s.budget)
	}
}

// paced judges how fast members were deleted until now, whoever led.
func (s *simulation) paced() {
	if s.pace.Every == 0 {
		return
	}
	now := s.clock.Now()
	s.deletes = append(s.deletes, now)
	for i, from := range s.deletes {
		n, most := len(s.deletes)-i, s.pace.Burst+int(now.Sub(from)/s.pace.Every)
		if n > most {
			s.breaks("%d members were deleted within %s, and may be %d", n, now.Sub(from), most)
		}
	}
}

// charged judges what one plan made the controller charge a pool with. What one
// stalled with counts again once that goes on, which is nobody's grant.
func (s *simulation) charged(was, is Account, used int) {
	if s.over = used > s.budget; s.over && is.Replacing > was.Replacing && !s.modeChanges {
		s.breaks("a pool with %d members in replacement was granted more, though all have %d and the budget is %d", was.Replacing, used, s.budget)
	}
}

// patched judges that the controller hid or showed a member.
func (s *simulation) patched(m *simMember) {
	s.stats.patches++
	if m.patches++; m.patches > 2 {
		s.breaks("member %s was patched %d times while `admit` said the same", m.name, m.patches)
	}
}

// unfinished says why a pool is not as it is to be; "" when it is.
func (p *simPool) unfinished() string {
	state := p.stored.GetAnnotations()[settings.RolloutStateKey]
	stale := 0
	for _, m := range p.members {
		if !m.current() {
			stale++
		}
	}
	switch {
	case p.missing() > 0:
		return fmt.Sprintf("%d members are missing", p.missing())
	case p.strategy == freshness.OnReplenish:
		return ""
	case stale > 0:
		return fmt.Sprintf("%d members are stale", stale)
	case state != string(freshness.Complete):
		return "it says " + state
	}
	for _, m := range p.members {
		if !m.shown && !m.leaving {
			return "member " + m.name + " is hidden"
		}
	}
	return ""
}
