package model

// Promise is what users are promised of binds, in mode enforce. This file says when it is
// broken. It shares nothing with the guard: not its rules, not its view of an object.
type Promise uint8

// What a history can break; Kept is none.
const (
	Kept Promise = iota
	// Fresh: what a claim gets was built from the revision in force when its write was
	// admitted, and since the last restart.
	Fresh
	// Alive: it runs in a live Pod of its own, in which nobody else worked.
	Alive
	// OneToOne: a member goes to one claim, once, and a claim has one sandbox.
	OneToOne
	// Belongs: it is of the pool and the template that the claim asks for, and the claim
	// is there.
	Belongs
	// InUse: what a claim has is not deleted by who keeps pools.
	InUse
	// Decided: the guard comes to a verdict on everything that it can read.
	Decided
)

// breaks tells which promise an admitted write would break, were it stored now.
func (s *state) breaks(a attempt) Promise {
	switch {
	case a.write == bindToTwo, a.write == coldForTwo:
		return OneToOne
	case !s.isServed(a.claim, a.formerUID):
		return Belongs
	case a.write == coldStart, a.write == foreign:
		return s.coldBreaks(a)
	}
	m := s.members[a.member]
	switch {
	case m.had || m.owner == ofClaim || m.owner == ofClaim+1:
		return OneToOne
	case m.owner == ofNobody, s.on(ClaimElsewhere, a.claim), s.odd == PoolTerminating:
		return Belongs
	case m.before && (s.odd == PoolReplaced || s.odd == PoolSwitched):
		return Belongs
	case !s.runs(a):
		return Alive
	case !s.isCurrent(a):
		return Fresh
	}
	return Kept
}

// isServed: only a claim that is there, and not about to go, can be given anything.
func (s *state) isServed(c uint8, former bool) bool {
	return !former && !s.on(ClaimDeleted, c) && !s.on(ClaimTerminating, c)
}

func (s *state) coldBreaks(a attempt) Promise {
	switch {
	case s.on(PodThere, a.claim):
		return Alive
	case s.odd == PoolTerminating, s.odd == PoolSwitched && a.formerTemplate:
		return Belongs
	case s.odd == TemplateDeleted, a.content != s.inForce:
		return Fresh
	}
	return Kept
}

// runs: nothing became of the member's Pod or its Sandbox, and the write leaves it the
// Pod that it has.
func (s *state) runs(a attempt) bool {
	if a.write == bindAndSwapPod {
		return false
	}
	if s.target != 1+a.member {
		return true
	}
	switch s.odd {
	case MemberTerminating, PodTerminating, PodFinished, PodGone, PodForeign, PodDebugged, NodeLeaving, PodNotYet:
		return false
	}
	return true
}

// isCurrent: Sandbox and Pod are of the revision in force after the write.
func (s *state) isCurrent(a attempt) bool {
	m := s.members[a.member]
	spec, pod := m.content, m.content
	if s.target == 1+a.member {
		switch s.odd {
		case MemberEdited:
			spec = 1 - spec
		case PodEdited:
			pod = 1 - pod
		}
	}
	if a.write == bindAndEdit {
		spec = 1 - spec
	}
	restarted := s.odd == RestartAsked && m.before
	return s.odd != TemplateDeleted && spec == s.inForce && pod == s.inForce && !restarted
}

// sandboxes counts what a claim has.
func (s *state) sandboxes(c uint8) int {
	n := 0
	for _, m := range s.members {
		if m.there && m.owner == ofClaim+c {
			n++
		}
	}
	if s.claims[c].cold {
		n++
	}
	return n
}

// isInUse: a claim that goes on has it.
func (s *state) isInUse(m uint8) bool {
	owner := s.members[m].owner
	return (owner == ofClaim || owner == ofClaim+1) && s.isServed(owner-ofClaim, false)
}
