package rollout

import (
	"slices"
	"time"

	"github.com/freshbind/freshbind/internal/freshness"
)

const deadline = 10 * time.Minute

// The times that all states have in common.
var (
	now           = time.Unix(1_000_000, 0)
	restedSince   = now.Add(-10 * time.Second)
	readyLately   = now.Add(-time.Second / 2)
	overdueSince  = now.Add(-time.Hour)
	readyLongAgo  = overdueSince.Add(time.Minute)
	readyBefore   = overdueSince.Add(-time.Minute)
	freshLongAgo  = now.Add(-time.Minute)
	revisionNames = [...]string{"1", "2", "3"}
)

// asRollout gives what is remembered its times back.
func (p *progress) asRollout() freshness.Rollout {
	r := freshness.Begin(revisionNames[p.revision], "template", time.Time{}, restedSince)
	r.Fresh, r.State, r.HeldUp, r.AwaitMissing, r.Inherited = now, outcomes[p.state], p.heldUp, p.await, p.inherited
	if p.overdue {
		r.Started, r.Progressed = overdueSince, overdueSince
	}
	if p.freshLongAgo {
		r.Fresh = freshLongAgo
	}
	for _, g := range p.groups {
		if g != (group{}) {
			r.Replacing = append(r.Replacing, freshness.Replacement{Ahead: int(g.ahead), Deleted: int(g.deleted)})
		}
	}
	return r
}

// progressOf takes the times from a rollout again.
func progressOf(r *freshness.Rollout) progress {
	p := progress{heldUp: r.HeldUp, await: r.AwaitMissing, inherited: r.Inherited, state: indexOf(outcomes, r.State)}
	p.revision = indexOf(revisionNames[:], r.Revision)
	p.overdue = !now.Before(r.Progressed.Add(deadline)) && !now.Before(r.Started.Add(deadline))
	p.freshLongAgo = r.Fresh.Before(now)
	if len(r.Replacing) > maxGroups {
		panic("more groups of replacements than there is room for")
	}
	for i, g := range r.Replacing {
		p.groups[i] = group{uint8(g.Ahead), uint8(g.Deleted)}
	}
	return p
}

// remember keeps a rollout for the next plan.
func (s *state) remember(r *freshness.Rollout) {
	s.memory = progressOf(r)
	for i := range s.members {
		if m := &s.members[i]; m.since != neverReady && !m.since.time().After(r.Progressed) {
			m.since = before
		}
	}
}

// time is since when a member is ready. What is ready since lately may be shown only
// now, when the last progress is later.
func (a age) time() time.Time {
	switch a {
	case neverReady:
		return time.Time{}
	case longAgo:
		return readyLongAgo
	case lately:
		return readyLately
	}
	return readyBefore
}

// asked is what a plan depends on of a member.
type asked struct {
	class          uint8
	since          age
	shown, leaving bool
}

// The classes of members.
const (
	noMember uint8 = iota
	isCurrent
	isStale
)

// question is what a plan depends on.
type question struct {
	members      [replicas]asked
	progress     progress
	filled, lost uint8
	goneFresh    bool
	paused       bool
	granted      uint8
}

// glance is the pool as one plan sees it, and at which slots its members are.
type glance struct {
	question
	at [replicas]int
}

// look is what (*pools.Controller).look, followRollout and observe do.
func (s *state) look(v *Variant, edits uint8) glance {
	content, g, n := s.contentAt(edits), glance{}, 0
	s.read = edits
	if s.memory.revision != content {
		s.follow(v, content)
	}
	g.progress, g.paused = s.memory, s.paused && !v.IgnoresPause
	for i := range s.members {
		m := &s.members[i]
		if !m.seen.there {
			continue
		}
		is := asked{class: isStale, shown: m.seen.shown, leaving: m.leaving}
		if m.content == content {
			is.class = isCurrent
		}
		if m.seen.ready {
			is.since = m.since
		}
		g.members[n], g.at[n] = is, i
		n++
	}
	if s.planned {
		s.observe(v, &g, n)
	}
	return g
}

// follow begins the rollout of another revision.
func (s *state) follow(v *Variant, content uint8) {
	was := s.memory.asRollout()
	next := was.Follow(revisionNames[content], "template", time.Time{}, now)
	if v.DropsOnEdit {
		next = freshness.Begin(revisionNames[content], "template", time.Time{}, now)
	}
	s.remember(&next)
}

// observe compares the members with those of the last plan.
func (s *state) observe(v *Variant, g *glance, n int) {
	filled, lost := s.gone.filled, s.gone.filled+s.gone.lost
	unseen := s.unseen
	for k := range n {
		m, is := &s.members[g.at[k]], g.members[k]
		available := is.since != neverReady && !is.leaving
		unseen = unseen || m.leaving
		switch {
		case m.leaving:
		case available && m.lastPlan != plannedReady:
			if is.class == isCurrent {
				filled++
			}
		case !available && m.lastPlan == plannedReady:
			lost++
		}
	}
	if !unseen {
		lost = 0
	}
	g.filled, g.lost, g.goneFresh = filled, lost, s.gone.fresh
	if v.CountsNoneLost {
		g.lost = 0
	}
}

// note counts a member that goes, and that the leader has not asked to be deleted.
func (g *gone) note(m *member) {
	switch {
	case m.leaving:
		return
	case m.lastPlan == plannedReady:
		g.lost++
	case m.lastPlan == plannedUnready && m.readied && m.wasCurrent:
		// It was of use, and is lost: more than there are places makes no difference.
		g.filled = min(g.filled+1, replicas)
	case m.lastPlan == unplanned && m.readied:
		g.filled = min(g.filled+1, replicas)
		return
	case m.lastPlan == plannedUnready && m.readied:
		g.lost++
	default:
		return
	}
	g.fresh = g.fresh || m.wasCurrent
}

// Share is how many more members a budget of some size grants a pool, of those that it
// wants, beside another one.
type Share func(size int, pool, another Charge, want int) int

// Charge is what a pool has of a budget.
type Charge struct {
	Replacing int
	Stalled   bool
}

// planner asks for plans and grants, each once.
type planner struct {
	bounds *Bounds
	share  Share
	plans  map[question]*freshness.Plan
	grants map[request]int
}

type request struct {
	pool, another Charge
	want          int
}

func newPlanner(b *Bounds, share Share) *planner {
	return &planner{bounds: b, share: share, plans: map[question]*freshness.Plan{}, grants: map[request]int{}}
}

func (p *planner) plan(v *Variant, q question) *freshness.Plan {
	plan := p.plans[q]
	if plan == nil {
		made := freshness.MakePlan(v.poolState(p.bounds, q))
		plan = &made
		p.plans[q] = plan
	}
	return plan
}

// poolState gives the planner what it is asked about.
func (v *Variant) poolState(b *Bounds, q question) freshness.PoolState {
	s := freshness.PoolState{
		Strategy: b.Strategy, Replicas: replicas, MaxUnavailable: b.MaxUnavailable, Paused: q.paused, Hideable: true,
		Granted: int(q.granted), Deletes: len(q.members), Filled: int(q.filled), Overtaken: int(q.lost), Now: now, Rollout: q.progress.asRollout(),
	}
	if b.Broken && !v.NoDeadline {
		s.Deadline = deadline
	}
	if v.NoStep {
		s.MaxUnavailable = replicas
	}
	if q.goneFresh {
		s.Rollout.Fresh, s.Rollout.Progressed = now, now
	}
	for k, is := range q.members {
		if is.class == noMember {
			continue
		}
		m := freshness.MemberState{
			Class: freshness.Stale, Created: readyBefore.Add(time.Duration(k) * time.Second), ReadySince: is.since.time(), Shown: is.shown,
			Leaving: is.leaving, ByPool: true, Gated: v.KeepsUnready,
		}
		if is.class == isCurrent {
			m.Class = freshness.Current
		}
		s.Members = append(s.Members, m)
	}
	return s
}

// proven has older members served only when a list proves that there is nothing else.
func (p *planner) proven(v *Variant, s *state, g *glance) *freshness.Plan {
	plan := p.plan(v, g.question)
	if plan.Admit != freshness.AdmitAny || s.admit == admitsAny || s.pends() == 0 || v.Unproven {
		return plan
	}
	g.progress.freshLongAgo = false
	return p.plan(v, g.question)
}

// step is what (*pools.Controller).step does: it looks at caches, unless they show less
// than it knows, and once more at what is stored where that calls for an act.
func (p *planner) step(v *Variant, s *state) (glance, *freshness.Plan) {
	seen := s.shown
	if seen < s.read && !v.GoesBack {
		seen = s.edits
	}
	g := s.look(v, seen)
	plan := p.proven(v, s, &g)
	already := plan.Rollout.Replacing.Deleted()
	granted := p.grant(v, Charge{already, plan.Stalled}, Charge{Replacing: int(s.others)}, plan.Wanted)
	if granted > 0 || len(plan.Delete)+len(plan.Hide)+len(plan.Show) > 0 {
		if !v.CachedTemplate {
			seen = s.edits
		}
		g = s.look(v, seen)
		g.granted = uint8(already + granted)
		plan = p.proven(v, s, &g)
	}
	return g, plan
}

// grant asks the budget.
func (p *planner) grant(v *Variant, pool, another Charge, want int) int {
	if v.NoBudget {
		return want
	}
	q := request{pool, another, want}
	granted, ok := p.grants[q]
	if !ok {
		granted = p.share(p.bounds.Budget, pool, another, want)
		p.grants[q] = granted
	}
	return granted
}

// waitsForDeletes reports whether the leader waits for a delete to be seen.
func (s *state) waitsForDeletes() bool {
	return slices.ContainsFunc(s.members[:], func(m member) bool { return m.leaving && m.seen.there })
}
