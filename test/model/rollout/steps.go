package rollout

import "github.com/freshbind/freshbind/internal/freshness"

// act is what happens in one step.
type act uint8

const (
	edits act = iota
	editsBroken
	editsBack
	pauses
	resumes
	showsTemplate
	showsMember
	bears
	bearsLate
	becomesReady
	fails
	isClaimed
	secondPasses
	deadlinePasses
	leaderChanges
	othersTake
	othersReturn
	plans
	plansQuietly
	plansAndEnds
)

// step is what happened, and to which member; -1 for none. content is that of a member
// that is born.
type step struct {
	act     act
	slot    int8
	content uint8
}

// onto is told of a step, what follows from it, which promise it breaks, and whether
// members were written to.
type onto func(of step, next *state, broken Promise, writes bool)

// fair reports whether it happens sooner or later, once people and claims leave the pool
// alone and members get ready in time; or, where they cannot, once the deadline passes.
func (s *state) fair(of act, b *Bounds) bool {
	switch of {
	case resumes, showsTemplate, showsMember, bears, becomesReady, secondPasses, othersReturn, plans:
		return true
	case deadlinePasses:
		return s.neverReady(s.inForce())
	case isClaimed:
		return b.Strategy == freshness.OnReplenish
	}
	return false
}

// successors visits each step, and what follows from it.
func (e *explorer) successors(s *state, visit onto) {
	do := func(of act, change func(*state)) {
		next := *s
		change(&next)
		visit(step{act: of, slot: -1}, &next, Kept, false)
	}
	e.people(s, do)
	e.time(s, do)
	if s.pends() < e.bounds.Late {
		e.births(s, visit)
		for i := range s.members {
			e.member(s, i, func(of act, change func(*state, *member)) {
				next := *s
				change(&next, &next.members[i])
				visit(step{act: of, slot: int8(i)}, &next, Kept, false)
			})
		}
	}
	for _, c := range e.carryOut(s) {
		visit(step{act: c.act, slot: -1}, &c.state, c.broken, c.writes)
	}
}

// people edit and pause, and other pools need their part of the budget.
func (e *explorer) people(s *state, do func(act, func(*state))) {
	b := e.bounds
	edit := func(of act, change func(*state)) {
		do(of, func(n *state) {
			n.edits++
			change(n)
			n.startOver()
			n.settle()
		})
	}
	if int(s.edits) < b.Edits {
		edit(edits, func(*state) {})
		if b.Broken && s.edits == 0 {
			edit(editsBroken, func(n *state) { n.broken = true })
		}
		if s.edits+1 == maxEdits {
			edit(editsBack, func(n *state) { n.back = true })
		}
	}
	switch {
	case s.paused:
		do(resumes, func(n *state) { n.paused = false })
	case b.Pauses:
		do(pauses, func(n *state) { n.paused = true })
	}
	if b.Others && int(s.others) < b.Budget && e.grantsAnother(s) {
		do(othersTake, func(n *state) { n.others++ })
	}
	if s.others > 0 {
		do(othersReturn, func(n *state) { n.others-- })
	}
}

// grantsAnother reports whether the budget has one more for another pool.
func (e *explorer) grantsAnother(s *state) bool {
	is := Charge{s.memory.deleted(), s.stalled}
	return e.planner.grant(e.variant, Charge{Replacing: int(s.others)}, is, 1) > 0
}

// time passes, caches see more of what is stored, and leaders change.
func (e *explorer) time(s *state, do func(act, func(*state))) {
	b := e.bounds
	if s.shown < s.edits {
		do(showsTemplate, func(n *state) { n.shown++ })
	}
	if s.pends() > 0 {
		do(showsMember, (*state).see)
	}
	if b.Strategy == freshness.RollingUpdate && !s.memory.freshLongAgo && !s.gone.fresh && !s.memory.inherited {
		do(secondPasses, func(n *state) { n.memory.freshLongAgo = true })
	}
	if b.Broken {
		do(deadlinePasses, func(n *state) {
			n.memory.overdue, n.stored.overdue, n.memory.freshLongAgo = true, true, !n.gone.fresh && !n.memory.inherited
			for i := range n.members {
				if n.members[i].since == lately {
					n.members[i].since = longAgo
				}
			}
		})
	}
	if b.Leaders {
		do(leaderChanges, func(n *state) { n.takeOver(e.variant, s.shown) })
		if s.shown < s.edits {
			do(leaderChanges, func(n *state) { n.takeOver(e.variant, s.edits) })
		}
	}
}

// births are by the pool controller, of the revision that its cache shows.
func (e *explorer) births(s *state, visit onto) {
	at := s.free()
	if at < 0 || s.living() >= replicas {
		return
	}
	bear := func(of act, content uint8) {
		next := *s
		next.members[at] = member{content: content, stored: sight{}.becomes(wasBorn)}
		next.push(at, wasBorn)
		next.settle()
		visit(step{act: of, slot: int8(at), content: content}, &next, Kept, false)
	}
	bear(bears, s.inForce())
	for older := range s.edits {
		if content := s.contentAt(older); e.bounds.LateBirths && content != s.inForce() {
			bear(bearsLate, content)
		}
	}
}

// member is what becomes of a member that is stored.
func (e *explorer) member(s *state, slot int, do func(act, func(*state, *member))) {
	m := &s.members[slot]
	switch {
	case !m.stored.there:
	case !m.stored.ready:
		if !s.neverReady(m.content) {
			do(becomesReady, func(n *state, m *member) {
				m.stored.ready, m.since = true, lately
				n.push(slot, gotReady)
				n.settle()
			})
		}
	default:
		if e.bounds.Failures {
			do(fails, func(n *state, m *member) {
				m.stored.ready, m.reshown = false, false
				n.push(slot, gotUnready)
				n.settle(byOthers)
			})
		}
		serves := e.bounds.Strategy == freshness.OnReplenish || e.bounds.Strategy == freshness.RollingUpdate && s.admit == admitsAny
		if e.bounds.Claims && m.stored.shown && (m.content == s.inForce() || serves) {
			do(isClaimed, func(n *state, m *member) {
				m.stored = sight{}
				n.push(slot, wentAway)
				n.settle(byOthers)
			})
		}
	}
}
