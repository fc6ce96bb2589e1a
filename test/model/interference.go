package model

// Interference is what a person with every right does once, past all controllers.
type Interference uint8

// The zero value: nothing yet.
const (
	Nothing Interference = iota
	// Over: it was done, and nothing refers to it any more.
	Over
	TemplateDeleted
	PoolReplaced
	PoolTerminating
	PoolSwitched
	RestartAsked
	MemberEdited
	MemberTerminating
	PodEdited
	PodTerminating
	PodFinished
	PodGone
	PodForeign
	PodDebugged
	NodeLeaving
	PodNotYet
	ClaimDeleted
	ClaimReplaced
	ClaimTerminating
	ClaimElsewhere
	PodThere
	// PutBack and Orphaned show in who owns the member, and nowhere else.
	PutBack
	Orphaned
)

func (i Interference) aboutMember() bool { return i >= MemberEdited && i <= PodNotYet }
func (i Interference) aboutClaim() bool  { return i >= ClaimDeleted && i <= PodThere }

// aboutPool: it tells members that were there before from those that came later.
func (i Interference) aboutPool() bool { return i >= TemplateDeleted && i <= RestartAsked }

// on reports whether the interference is this one and about that member or claim.
func (s *state) on(i Interference, index uint8) bool { return s.odd == i && s.target == 1+index }

// interfere emits what the person can do now, if nothing was done yet.
func (e *explorer) interfere(s *state) {
	if s.odd != Nothing || e.bounds.Quiet {
		return
	}
	for i := TemplateDeleted; i <= RestartAsked; i++ {
		e.toPool(*s, i)
	}
	for m := range uint8(e.bounds.Members) {
		e.toMember(s, m)
	}
	for c := range uint8(e.bounds.Claims) {
		e.toClaim(s, c)
	}
}

func (e *explorer) toPool(next state, i Interference) {
	next.odd = i
	if i == PoolReplaced || i == PoolSwitched || i == RestartAsked {
		for m := range next.members {
			next.members[m].before = next.members[m].there
		}
	}
	e.emit(Step{Act: Interferes, Interference: i}, next)
}

// toMember changes an idle member, or its Pod, or puts one back that a claim has.
func (e *explorer) toMember(s *state, m uint8) {
	did := func(i Interference, change func(*state)) {
		next := *s
		next.odd, next.target = i, 1+m
		change(&next)
		e.emit(Step{Act: Interferes, Interference: i, attempt: attempt{member: m}}, next)
	}
	written := func(next *state) { e.written(next, m) }
	switch member := s.members[m]; {
	case !member.there || member.owner == ofNobody:
	case member.owner != ofPool:
		did(PutBack, func(next *state) {
			next.odd, next.target, next.members[m].owner = Over, 0, ofPool
			next.forget(m)
			written(next)
		})
	default:
		for _, i := range []Interference{PodEdited, PodTerminating, PodFinished, PodGone, PodForeign, PodDebugged, NodeLeaving} {
			did(i, func(*state) {})
		}
		did(MemberEdited, written)
		did(MemberTerminating, written)
		did(Orphaned, func(next *state) {
			next.odd, next.target, next.members[m].owner = Over, 0, ofNobody
			written(next)
		})
	}
}

func (e *explorer) toClaim(s *state, c uint8) {
	did := func(i Interference, change func(*state)) {
		next := *s
		next.odd, next.target = i, 1+c
		change(&next)
		e.emit(Step{Act: Interferes, Interference: i, attempt: attempt{claim: c}}, next)
	}
	did(ClaimDeleted, func(next *state) { next.endClaim(c) })
	did(ClaimReplaced, func(next *state) { next.endClaim(c) })
	did(ClaimTerminating, func(*state) {})
	if s.claims[c] == (claim{}) && !s.held(c) && !s.inFlight(c) {
		did(ClaimElsewhere, func(*state) {})
	}
	if !s.claims[c].cold {
		did(PodThere, func(*state) {})
	}
}

// endClaim: a claim goes, and the garbage collector takes what it had.
func (s *state) endClaim(c uint8) {
	for m := range uint8(maxMembers) {
		if s.members[m].there && s.members[m].owner == ofClaim+c {
			s.remove(m)
		}
	}
	s.claims[c] = claim{}
	for f := range s.flights {
		if s.flights[f].write != noWrite && s.flights[f].claim == c {
			s.flights[f].former = true
		}
	}
}

// remove takes a member out of the cluster. Its name never comes back.
func (s *state) remove(m uint8) {
	s.members[m] = member{}
	for c := range s.claims {
		if s.claims[c].names == 1+m {
			s.claims[c].names = namesGone
		}
	}
	s.forget(m)
	for f := range s.flights {
		if s.flights[f].write.onMember() && s.flights[f].member == m {
			s.flights[f] = flight{}
		}
	}
	if s.odd.aboutMember() && s.target == 1+m {
		s.odd, s.target = Over, 0
	}
}

// forget: a status says nothing any more that names the member.
func (s *state) forget(m uint8) {
	for c := range s.claims {
		if s.claims[c].status == 1+m {
			s.claims[c].status = 0
		}
	}
}

// held reports whether the claim has a sandbox that was a member.
func (s *state) held(c uint8) bool {
	for m := range s.members {
		if s.members[m].there && s.members[m].owner == ofClaim+c {
			return true
		}
	}
	return false
}

func (s *state) inFlight(c uint8) bool {
	for _, f := range s.flights {
		if f.write != noWrite && f.claim == c {
			return true
		}
	}
	return false
}
