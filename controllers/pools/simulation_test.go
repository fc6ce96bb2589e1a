package pools

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/test/builders"
)

// simEvent is one kind of what may happen, and how often it does beside the others.
type simEvent struct {
	name   string
	weight int
	do     func(s *simulation)
}

// simEvents are all that happen while it is not calm.
var simEvents = []simEvent{
	{"reconcile", 30, (*simulation).reconciles},
	{"members are shown", 30, func(s *simulation) { s.leader.show(memberChanges, 1+s.random.IntN(4)) }},
	{"pools are shown", 15, func(s *simulation) { s.leader.show(poolChanges, 1+s.random.IntN(2)) }},
	{"templates are shown", 10, func(s *simulation) { s.leader.show(templateChanges, 1) }},
	{"follower is shown", 30, func(s *simulation) { s.follower.show(stream(s.random.IntN(int(simStreams))), 1+s.random.IntN(6)) }},
	{"births", 25, (*simulation).births},
	{"starts", 25, (*simulation).starts},
	{"goes", 10, (*simulation).goes},
	{"claim", 12, (*simulation).claims},
	{"fails", 1, (*simulation).memberFails},
	{"edit", 1, func(s *simulation) {
		t := s.templates[s.random.IntN(len(s.templates))]
		if s.random.IntN(4) == 0 {
			s.edit(t, t.live.template.GetName())
		}
	}},
	{"pool changes", 1, (*simulation).changesPool},
	{"kept", 1, func(s *simulation) {
		if m := s.any(func(*simMember) bool { return true }); m != nil {
			m.kept = s.random.IntN(2) == 0
		}
	}},
	{"mode changes", 1, func(s *simulation) {
		if s.modeChanges && s.random.IntN(8) == 0 {
			s.audited = !s.audited
			s.logf("audited: %t", s.audited)
		}
	}},
	{"mode is shown", 10, func(s *simulation) { s.leader.showMode() }},
	{"mode is shown to the follower", 10, func(s *simulation) { s.follower.showMode() }},
	{"leader dies", 1, func(s *simulation) {
		if s.random.IntN(4) == 0 {
			s.dying = true
			s.reconciles()
			s.succeed()
		}
	}},
}

func (s *simulation) reconciles() {
	var due []client.ObjectKey
	for _, p := range s.pools {
		if at, waits := s.leader.due[p.key]; waits && !at.After(s.clock.Now()) {
			due = append(due, p.key)
		}
	}
	if len(due) > 0 {
		s.leader.reconcile(due[s.random.IntN(len(due))])
	}
}

// succeed has the follower lead.
func (s *simulation) succeed() {
	s.stats.leaders++
	s.logf("the leader is gone")
	s.dying = false
	s.leader, s.follower = s.follower, s.follower.behind()
	s.leader.lead()
}

// births: the platform's controller makes what is missing.
func (s *simulation) births() {
	p := s.pools[s.random.IntN(len(s.pools))]
	if s.random.IntN(3) > 0 || p.strategy != freshness.OnReplenish || s.calm {
		// Births of older revisions are refused where nobody may be given them.
		p.born = p.template.live
	}
	alive := 0
	for _, m := range p.members {
		if !m.leaving {
			alive++
		}
	}
	for range min(p.replicas()-alive, 1+s.random.IntN(4)) {
		m := s.bear(p)
		s.logf("%s is born of %s", m.name, imageOf(m.version.template))
	}
	if alive > p.replicas() {
		// It deletes those first that are not ready.
		m := p.members[0]
		for _, o := range p.members {
			if m.leaving || o.ready.IsZero() && !o.leaving {
				m = o
			}
		}
		s.logf("%s is one too many", m.name)
		s.gone(m, func() { m.pool.account.taken(m) })
	}
	s.end()
}

// any member of which that holds; nil for none.
func (s *simulation) any(which func(*simMember) bool) *simMember {
	var all []*simMember
	for _, p := range s.pools {
		for _, m := range p.members {
			if which(m) {
				all = append(all, m)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[s.random.IntN(len(all))]
}

func (s *simulation) starts() {
	m := s.any(func(m *simMember) bool {
		return !m.leaving && m.ready.IsZero() && (s.calm || !m.starts.IsZero()) && !m.starts.After(s.clock.Now())
	})
	if m == nil {
		return
	}
	m.ready = s.clock.Now().Truncate(time.Second)
	s.logf("%s is ready", m.name)
	s.written(m, nil)
	s.end()
	s.settleAvailability()
}

// memberFails: the Pod of a member that was available is not ready for a while. One
// that fails before counts as available to a late cache: no controller can know.
func (s *simulation) memberFails() {
	m := s.any(func(m *simMember) bool { return !m.leaving && m.available })
	if m == nil {
		return
	}
	m.ready, m.starts = time.Time{}, s.clock.Now().Add(time.Duration(s.random.IntN(30))*time.Second)
	s.logf("%s is not ready any more", m.name)
	s.written(m, func() { m.pool.account.leaves(m, byOthers) })
	s.end()
}

// goes: a member whose deletion has begun.
func (s *simulation) goes() {
	if m := s.any(func(m *simMember) bool { return m.leaving }); m != nil {
		s.gone(m, nil)
		s.end()
	}
}

// claimable reports whether the guard would let a claim have the member.
func (m *simMember) claimable() bool {
	p := m.pool
	if m.leaving || m.ready.IsZero() || !m.shown || m.version.template.GetName() != p.template.live.template.GetName() {
		return false
	}
	return m.current() || freshness.ServesStale(p.strategy, p.admit() == string(freshness.AdmitAny))
}

func (s *simulation) claims() {
	if m := s.any((*simMember).claimable); m != nil {
		s.claim(m)
		s.end()
	}
}

func (s *simulation) claim(m *simMember) {
	s.stats.claims++
	s.gone(m, func() {
		m.pool.account.taken(m)
		s.logf("%s is claimed; gaps of %s: %v", m.name, m.pool.key.Name, m.pool.account.gaps)
	})
}

func (s *simulation) changesPool() {
	p := s.pools[s.random.IntN(len(s.pools))]
	b := builders.PoolFrom(p.stored)
	switch s.random.IntN(9) {
	case 0:
		p.template = s.templates[s.random.IntN(len(s.templates))]
		b.Template(p.template.live.template.GetName())
		s.logf("%s refers to %s", p.key.Name, p.template.live.template.GetName())
	case 1, 2:
		paused := fmt.Sprint(!p.paused())
		b.Annotation("freshbind.dev/paused", paused)
		s.logf("%s is paused: %s", p.key.Name, paused)
	case 3, 4:
		n := s.random.Int64N(13)
		b.Replicas(n)
		s.logf("%s has %d replicas", p.key.Name, n)
	case 5:
		s.stats.restarts++
		b.Annotation("freshbind.dev/restarted-at", s.clock.Now().UTC().Format(time.RFC3339))
		s.logf("%s is to be restarted", p.key.Name)
	default:
		return
	}
	s.store(p, b.Obj())
	s.end()
}

// passes lets time pass.
func (s *simulation) passes(by time.Duration) {
	s.clock.SetTime(s.clock.Now().Add(by))
	s.settleAvailability()
}

// busy takes one step.
func (s *simulation) busy(step int) {
	s.draw(uint64(step) + 1)
	s.stats.steps++
	s.passes([]time.Duration{0, 0, 20 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond}[s.random.IntN(5)])
	if s.random.IntN(400) == 0 {
		s.passes(time.Duration(s.random.IntN(120)) * time.Second)
	}
	all := 0
	for _, e := range simEvents {
		all += e.weight
	}
	n := s.random.IntN(all)
	for _, e := range simEvents {
		if n -= e.weight; n < 0 {
			e.do(s)
			break
		}
	}
	s.settleAvailability()
}

const (
	// simCalm bounds how long pools may take once nothing happens any more, and in
	// how many steps.
	simCalm      = 2 * time.Hour
	simCalmSteps = 20_000
)

// settle has nothing happen any more but what has to, until every pool is as it is
// to be.
func (s *simulation) settle() {
	s.calm, s.audited = true, false
	s.logf("it gets calm, and everything is enforced")
	for _, p := range s.pools {
		if p.paused() {
			s.store(p, builders.PoolFrom(p.stored).Annotation("freshbind.dev/paused", "false").Obj())
			s.end()
		}
	}
	until := s.clock.Now().Add(simCalm)
	for steps := 0; s.broken == ""; steps++ {
		s.draw(1<<32 + uint64(steps))
		s.stats.steps++
		why := ""
		for _, p := range s.pools {
			if not := p.unfinished(); not != "" {
				why = fmt.Sprintf("pool %s: %s", p.key.Name, not)
			}
		}
		if why == "" {
			return
		}
		if s.clock.Now().After(until) || steps > simCalmSteps {
			s.breaks("nothing ends, %s after everything else did: %s", s.clock.Now().Sub(until.Add(-simCalm)), why)
		}
		for range s.pools {
			s.births()
			s.starts()
		}
		s.goes()
		for of := range simStreams {
			s.leader.show(of, 1<<20)
		}
		s.leader.showMode()
		s.reconciles()
		s.passes(250 * time.Millisecond)
	}
}

// run is one simulation, without some of its steps.
func run(seed uint64, steps int, without map[int]bool, story *[]string) *simulation {
	s := newSimulation(seed, story)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; i < steps && s.broken == ""; i++ {
		if !without[i] {
			s.busy(i)
		}
	}
	if s.broken == "" {
		s.settle()
	}
	return s
}

func envInt(name string, byDefault int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return byDefault
}

// simBusy is how many steps a simulation takes before it gets calm.
const simBusy = 3000

// TestSimulation keeps pools current while claims, edits, failures, leaders and the
// mode come and go, and holds the controller to what it promises: a rollout ends once
// the rest does, max-unavailable, the budget and its pace always hold, nothing is
// written while nothing is enforced, and no member is hidden and shown without end.
// SIMULATION_STEPS says how far it goes,
// SIMULATION_SEED where it begins, and SIMULATION_RUNS how much is tried to shorten
// the story of one that breaks a promise.
func TestSimulation(t *testing.T) {
	steps, first := envInt("SIMULATION_STEPS", 100_000), uint64(envInt("SIMULATION_SEED", 1))
	var total simStats
	seed := first
	for ; total.steps < steps; seed++ {
		s := run(seed, simBusy, nil, nil)
		total.add(s.stats)
		if s.broken != "" {
			t.Errorf("seed %d: %s", seed, s.broken)
			t.Log(tale(seed, s.promise))
			seed++
			break
		}
	}
	t.Logf("seeds %d to %d: %+v", first, seed-1, total)
}

// tale is the story of a simulation that breaks a promise, without what is not
// needed for that.
func tale(seed uint64, promise string) string {
	without, runs, most := map[int]bool{}, 0, envInt("SIMULATION_RUNS", 200)
	breaks := func(without map[int]bool) bool {
		runs++
		return run(seed, simBusy, without, nil).promise == promise
	}
	for chunk := simBusy / 2; chunk > 0; chunk /= 2 {
		for from := 0; from < simBusy && runs < most; from += chunk {
			less := maps.Clone(without)
			for i := from; i < min(from+chunk, simBusy); i++ {
				less[i] = true
			}
			if len(less) > len(without) && breaks(less) {
				without = less
			}
		}
	}
	var story []string
	run(seed, simBusy, without, &story)
	return fmt.Sprintf("%d of %d steps are enough:\n%s", simBusy-len(without), simBusy, strings.Join(story, "\n"))
}
