package rollout

import "github.com/freshbind/freshbind/internal/freshness"

const (
	// replicas is how many members the pool asks for.
	replicas = 3
	// maxLate bounds how many changes by others a cache has not shown: nature waits where
	// there would be more. Deletes and patches by Freshbind come on top, at most one for
	// each member that its cache shows.
	maxLate    = 2
	maxPending = maxLate + replicas
	// slots are for members that are stored or shown.
	slots = replicas + maxLate
	// maxGroups is how many groups of replacements there can be.
	maxGroups = 3
	// maxEdits bounds how often the template changes.
	maxEdits = 2
)

// older is the content of a member that is of no revision which is, or will be, in force
// or shown.
const older = 3

// age is since when a member is ready, beside what the leader remembers as the last
// progress.
type age uint8

const (
	neverReady age = iota
	// before the last progress, longAgo after it but before the deadline passed, and
	// lately since then.
	before
	longAgo
	lately
)

// planStatus is what a member was when the last plan was made.
type planStatus uint8

const (
	unplanned planStatus = iota
	plannedUnready
	plannedReady
)

// sight is a member as it is stored, or as the cache shows it.
type sight struct{ there, ready, shown bool }

type member struct {
	content      uint8
	stored, seen sight
	since        age
	// lastPlan and wasCurrent are of the last plan, leaving and readied what the leader
	// knows of it since.
	lastPlan                     planStatus
	wasCurrent, leaving, readied bool
	// reshown: Freshbind has hidden and shown it again, though nothing else has changed.
	reshown bool
}

// change is what happened to a member, and is not seen yet.
type change struct {
	slot uint8
	what what
}

type what uint8

const (
	noChange what = iota
	wasBorn
	gotReady
	gotUnready
	wentAway
	wasHidden
	wasShown
)

// group is a [freshness.Replacement].
type group struct{ ahead, deleted uint8 }

// progress is a [freshness.Rollout], with its times reduced to what matters.
type progress struct {
	heldUp, overdue, freshLongAgo bool
	await, inherited              bool
	revision, state               uint8
	groups                        [maxGroups]group
}

// gone is what the leader has seen go that the last plan did not see go: how many were
// of use before, how many more were available, and whether one of them was current.
type gone struct {
	filled, lost uint8
	fresh        bool
}

// state is everything that matters for what follows.
type state struct {
	members [slots]member
	pending [maxPending]change
	// edits is how often the template was edited, shown how many of these the cache
	// shows. back: the second edit brought the first revision back. broken: no member of
	// the second revision gets ready.
	edits, shown uint8
	// read is which of these the leader has planned on, readStored which one the pool says.
	read, readStored uint8
	back, broken     bool
	paused           bool
	memory, stored   progress
	// cause and admit are what the pool says beside that.
	cause, admit uint8
	// planned: the leader compares the next plan with its last. unseen: some of its deletes
	// were not seen by that. stalled is what the budget knows.
	planned, unseen, stalled bool
	gone                     gone
	// others is what other pools replace.
	others uint8
	// gaps are the onlooker's, the oldest first.
	gaps [replicas]gap
}

// What the pool says of whom claims are given.
const (
	admitsNothing uint8 = iota
	admitsFresh
	admitsAny
)

var (
	outcomes = freshness.States()
	causes   = []freshness.Cause{
		freshness.MembersUpToDate, freshness.MembersUpdating, freshness.Queued, freshness.ProgressDeadlineExceeded,
		freshness.RolloutPaused, freshness.StaleByStrategy,
	}
)

func initial() state {
	var s state
	for i := range replicas {
		is := sight{there: true, ready: true, shown: true}
		s.members[i] = member{stored: is, seen: is, since: before}
	}
	s.memory = progress{state: indexOf(outcomes, freshness.Complete)}
	s.stored = s.memory
	return s
}

func indexOf[T comparable](all []T, of T) uint8 {
	for i, is := range all {
		if is == of {
			return uint8(i)
		}
	}
	panic("a word that the model does not know")
}

// contentAt is the revision after so many edits.
func (s *state) contentAt(edits uint8) uint8 {
	if edits == maxEdits && s.back {
		return 0
	}
	return edits
}

func (s *state) inForce() uint8 { return s.contentAt(s.edits) }

// neverReady reports whether no member of the revision gets ready.
func (s *state) neverReady(content uint8) bool { return content == 1 && s.broken }

func (p *progress) says(of freshness.State) bool { return outcomes[p.state] == of }

func (p *progress) deleted() int {
	n := 0
	for _, g := range p.groups {
		n += int(g.deleted)
	}
	return n
}

func (p *progress) awaited() int {
	n := p.deleted()
	for _, g := range p.groups {
		n += int(g.ahead)
	}
	return n
}

// pends is how many changes are not seen yet.
func (s *state) pends() int {
	n := 0
	for n < maxPending && s.pending[n].what != noChange {
		n++
	}
	return n
}

func (s *state) push(slot int, w what) { s.pending[s.pends()] = change{uint8(slot), w} }

// changed reports whether the member is another version than the cache shows.
func (s *state) changed(slot int) bool {
	for _, c := range s.pending {
		if c.what != noChange && int(c.slot) == slot {
			return true
		}
	}
	return false
}

// becomes is a member after a change.
func (w sight) becomes(of what) sight {
	switch of {
	case wasBorn:
		return sight{there: true, shown: true}
	case gotReady:
		w.ready = true
	case gotUnready:
		w.ready = false
	case wentAway:
		return sight{}
	case wasHidden:
		w.shown = false
	case wasShown:
		w.shown = true
	}
	return w
}

// see has the cache show the next change.
func (s *state) see() {
	c := s.pending[0]
	copy(s.pending[:], s.pending[1:])
	s.pending[maxPending-1] = change{}
	m := &s.members[c.slot]
	m.seen = m.seen.becomes(c.what)
	switch c.what {
	case gotReady:
		m.readied = s.planned
	case wentAway:
		if s.planned {
			s.gone.note(m)
		}
		m.leaving = false
	}
}

// living is how many members are stored.
func (s *state) living() int {
	n := 0
	for i := range s.members {
		if s.members[i].stored.there {
			n++
		}
	}
	return n
}

// free is a slot that nobody has, or -1.
func (s *state) free() int {
	for i := range s.members {
		if m := &s.members[i]; !m.stored.there && !m.seen.there && !s.changed(i) {
			return i
		}
	}
	return -1
}

// tidy forgets what makes no difference any more, and returns where each member was: the
// order of slots is that of births.
func (s *state) tidy(b *Bounds) [slots]int {
	var from, to [slots]int
	n := 0
	for i := range s.members {
		m := s.members[i]
		s.members[i] = member{}
		if !m.stored.there && !m.seen.there && !s.changed(i) {
			continue
		}
		s.simplify(&m, b)
		s.members[n], from[n], to[i] = m, i, n
		n++
	}
	for i := range s.pending {
		if s.pending[i].what != noChange {
			s.pending[i].slot = uint8(to[s.pending[i].slot])
		}
	}
	for i := n; i < slots; i++ {
		from[i] = -1
	}
	s.memory.simplify(b)
	s.stored.simplify(b)
	if !b.Leaders {
		s.stored.groups, s.stored.overdue = [maxGroups]group{}, false
	}
	s.stalled = s.stalled && b.Others
	if s.read <= s.shown {
		s.read = 0
	}
	if s.readStored <= s.shown || !b.Leaders {
		s.readStored = 0
	}
	s.simplifyGone()
	return from
}

// simplifyGone: what went is of no interest where nothing is awaited, nor that it was lost
// where all deletes are seen.
func (s *state) simplifyGone() {
	if !s.planned {
		s.unseen, s.gone = false, gone{}
		return
	}
	if !s.unseen && !s.waitsForDeletes() {
		s.gone.filled, s.gone.lost = min(s.gone.filled, uint8(s.memory.awaited())), 0
	}
	if s.gone.fresh {
		s.memory.freshLongAgo = false
	}
}

func (s *state) simplify(m *member, b *Bounds) {
	if int(s.edits) == b.Edits && !s.neverReady(m.content) {
		again := false
		for e := s.shown; e <= s.edits; e++ {
			again = again || s.contentAt(e) == m.content
		}
		if !again {
			m.content = older
		}
	}
	if !m.stored.there {
		m.reshown = false
	}
	switch {
	case !s.planned, m.leaving:
		m.lastPlan, m.wasCurrent, m.readied = unplanned, false, false
	case m.lastPlan == plannedReady:
		m.readied = false
	}
	switch rests := s.memory.says(freshness.Complete) && s.memory.awaited() == 0; {
	case !m.stored.ready && !m.seen.ready:
		m.since = neverReady
	case rests, m.content == older, !b.Broken:
		m.since = before
	}
}

func (p *progress) simplify(b *Bounds) {
	if !b.Broken || p.says(freshness.Complete) && p.awaited() == 0 {
		p.overdue = false
	}
	p.freshLongAgo = p.freshLongAgo && b.Strategy == freshness.RollingUpdate
}
