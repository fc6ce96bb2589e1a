package rollout

import (
	"slices"

	"github.com/freshbind/freshbind/internal/freshness"
)

// Promise is what a step or a history breaks. This file says when; it shares nothing with
// the planner.
type Promise uint8

// The promises; the worse comes later.
const (
	Kept Promise = iota
	// Ends: every rollout completes, or fails in words.
	Ends
	// Steady: nothing is written for ever, and no member is hidden and shown in turns.
	Steady
	// Withheld: older members are not given out while there is a fresh one.
	Withheld
	// Untouched: a pool that is paused, or does not roll, has nothing deleted.
	Untouched
	// Bounded: no more members than the pool allows are deleted and not replaced.
	Bounded
	// Budgeted: nor more than all pools have together.
	Budgeted
	// Spared: no fresh member is deleted.
	Spared
)

var promiseWords = [...]string{
	Kept:      "nothing is broken",
	Ends:      "the rollout never ends, though from now on people and claims leave the pool alone",
	Steady:    "Freshbind hides and shows members without end",
	Withheld:  "claims are offered older members though a fresh one is ready",
	Untouched: "a member is deleted from a pool that is paused, or does not roll",
	Bounded:   "more ready members are deleted and not replaced than max-unavailable",
	Budgeted:  "more members are deleted and not replaced than the budget of all pools",
	Spared:    "a fresh member is deleted",
}

// String says what is wrong.
func (p Promise) String() string { return promiseWords[p] }

// gap is a place in the pool that has to be filled, by who left it. Whatever becomes
// ready closes the one that is open for the longest. An older member that is not ready
// has no such gap before it is deleted.
type gap uint8

const (
	noGap gap = iota
	// byOthers: a claim took it, or it failed, or it was never there.
	byOthers
	// byRollout: Freshbind deleted a member that was ready; byCleaning: one that was not.
	byRollout
	byCleaning
)

// open is how many gaps there have to be.
func (s *state) open() int {
	n := replicas
	for i := range s.members {
		if m := &s.members[i]; m.stored.ready || m.stored.there && m.content != s.inForce() {
			n--
		}
	}
	return max(n, 0)
}

// settle has as many gaps as there have to be, after one more, or none, was left.
func (s *state) settle(also ...gap) {
	var all [replicas + 1]gap
	n := 0
	for n < replicas && s.gaps[n] != noGap {
		all[n] = s.gaps[n]
		n++
	}
	n += copy(all[n:], also)
	want := s.open()
	over := max(0, n-want)
	s.gaps = [replicas]gap{}
	for i := range want {
		s.gaps[i] = byOthers
	}
	copy(s.gaps[:], all[over:n])
}

// replacing is how many gaps of those kinds there are.
func (s *state) replacing(which ...gap) int {
	n := 0
	for _, g := range s.gaps {
		if slices.Contains(which, g) {
			n++
		}
	}
	return n
}

// deleted takes away a member that Freshbind deletes, and judges that. over: more is in
// replacement already than the budget has, because a pool had stalled and goes on.
func (s *state) deleted(slot int, b *Bounds, over bool) Promise {
	m := s.members[slot]
	before := s.replacing(byRollout, byCleaning)
	left := byCleaning
	if m.stored.ready {
		left = byRollout
	}
	s.members[slot].stored = sight{}
	s.push(slot, wentAway)
	s.settle(left)
	n := s.replacing(byRollout, byCleaning)
	switch {
	case m.content == s.inForce():
		return Spared
	case n > before && n+int(s.others) > b.Budget && !over:
		return Budgeted
	case b.Strategy == freshness.RollingUpdate && m.stored.ready && s.replacing(byRollout) > b.MaxUnavailable:
		return Bounded
	case s.paused, b.Strategy == freshness.OnReplenish:
		return Untouched
	}
	return Kept
}

// isOver reports whether the pool is taken to replace more than the budget has, which it
// may once it goes on after it had stalled: others were granted what it had.
func (s *state) isOver(b *Bounds) bool {
	return s.stalled || s.memory.deleted()+int(s.others) > b.Budget
}

// offered judges that the pool begins to say that claims are given older members.
func (s *state) offered() Promise {
	fresh := slices.ContainsFunc(s.members[:], func(m member) bool { return m.stored.ready && m.content == s.inForce() })
	if fresh && s.shown == s.edits {
		return Withheld
	}
	return Kept
}

// ended reports whether the pool is as it is to be, and says so. Where no member of the
// revision in force can become ready it is enough that the pool says that.
func (s *state) ended() bool {
	if s.paused || s.stored.revision != s.inForce() {
		return false
	}
	c := s.count()
	switch {
	case s.neverReady(s.inForce()):
		return s.stored.says(freshness.Failed) || s.stored.says(freshness.Complete) && c.old == 0
	case s.stored.says(freshness.Failed):
		return c.coming == 0
	}
	return s.stored.says(freshness.Complete) && s.admit == admitsNothing && c.old == 0 && c.offered == replicas
}

// counts are how many members are of an older revision, are offered to claims, or can
// still become ready and are, or will be, of the revision in force.
type counts struct{ old, offered, coming int }

func (s *state) count() counts {
	c := counts{coming: replicas - s.living()}
	for i := range s.members {
		m := &s.members[i]
		if !m.stored.there {
			continue
		}
		if m.content != s.inForce() {
			c.old++
		} else if !m.stored.ready {
			c.coming++
		}
		if m.stored.ready && m.stored.shown {
			c.offered++
		}
	}
	return c
}
