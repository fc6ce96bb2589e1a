package model

// Act is what somebody does in one step.
type Act uint8

// Who acts is said beside each.
const (
	// Edits: the template's writer puts a revision in force.
	Edits Act = iota
	// Born: the pool controller creates a member of a revision that it has seen in force.
	Born
	// Chooses: a claim controller writes a member's name into the claim.
	Chooses
	// Admitted: a claim controller, or the person, makes a write that admission lets
	// through.
	Admitted
	// Stored: a write that was admitted is stored.
	Stored
	// NamedInStatus: a claim controller writes what the claim has into its status.
	NamedInStatus
	// DeletedByPool: the pool controller deletes a member, by its name alone.
	DeletedByPool
	// DeletedByUs: Freshbind's leader deletes a member.
	DeletedByUs
	// Interferes: the person does something else.
	Interferes
)

// Step is one act, with what it is about.
type Step struct {
	Act          Act
	Interference Interference
	attempt
}

// successors emits everything that can happen next.
func (e *explorer) successors(s *state) {
	e.edits(s)
	e.births(s)
	e.claimControllers(s)
	e.deletes(s)
	e.stores(s)
	e.interfere(s)
	e.writesByHand(s)
}

func (e *explorer) edits(s *state) {
	// After these the claims' template is no more the one that its writer knows.
	if s.odd == TemplateDeleted || s.odd == PoolSwitched {
		return
	}
	next := *s
	next.inForce, next.other = 1-s.inForce, true
	e.emit(Step{Act: Edits, attempt: attempt{content: next.inForce}}, next)
}

// births: the guard refuses stale ones, but its hook fails open, so that nothing may
// depend on it.
func (e *explorer) births(s *state) {
	for m := range uint8(e.bounds.Members) {
		if s.members[m].there {
			continue
		}
		for rev := range s.revisions() {
			next, step := *s, Step{Act: Born, attempt: attempt{member: m, content: rev}}
			next.members[m] = member{there: true, content: rev}
			e.emit(step, next)
			if s.odd == Nothing && !e.bounds.Quiet {
				next.odd, next.target = PodNotYet, 1+m
				step.Interference = PodNotYet
				e.emit(step, next)
			}
		}
		// The other free places are as good.
		return
	}
}

// revisions were in force at some time, and are what a cache may show.
func (s *state) revisions() uint8 {
	if s.other {
		return 2
	}
	return 1
}

// claimControllers: two of them, each with caches of its own. What one writes onto a
// claim it writes onto the version that is stored; what it makes of the others may be
// as late as it will.
func (e *explorer) claimControllers(s *state) {
	for c := range uint8(e.bounds.Claims) {
		alive := !s.on(ClaimDeleted, c)
		for m := range uint8(e.bounds.Members) {
			if !s.members[m].there {
				continue
			}
			if alive && s.claims[c].names != 1+m {
				next := *s
				next.claims[c].names = 1 + m
				e.emit(Step{Act: Chooses, attempt: attempt{claim: c, member: m}}, next)
			}
			if alive && s.claims[c].status == 0 && s.members[m].owner == ofClaim+c {
				next := *s
				next.claims[c].status = 1 + m
				e.emit(Step{Act: NamedInStatus, attempt: attempt{claim: c, member: m}}, next)
			}
			e.forClaim(s, attempt{write: bind, claim: c, member: m})
		}
		// The API server stores no second Sandbox of one name.
		for rev := range s.revisions() {
			if s.claims[c].cold {
				break
			}
			e.forClaim(s, attempt{write: coldStart, claim: c, content: rev})
			if s.odd == PoolSwitched {
				e.forClaim(s, attempt{write: coldStart, claim: c, content: rev, formerTemplate: true})
			}
		}
	}
}

// forClaim admits a write for the claim of that name, and for the one before it.
func (e *explorer) forClaim(s *state, a attempt) {
	e.admit(s, a)
	if s.on(ClaimReplaced, a.claim) {
		a.formerUID = true
		e.admit(s, a)
	}
}

// admit judges an attempt and, if it is let through, sends it on its way.
func (e *explorer) admit(s *state, a attempt) {
	free := -1
	for i := range e.bounds.Flights {
		if s.flights[i].write == noWrite {
			free = i
		}
	}
	if free < 0 {
		return
	}
	step := Step{Act: Admitted, attempt: a}
	verdict := e.ask(s, a)
	switch {
	case verdict.none:
		e.breaks(Decided, step)
		return
	case !verdict.allowed:
		e.reasons[verdict.reason] = true
		return
	}
	if p := s.breaks(a); p != Kept {
		e.breaks(p, step)
		return
	}
	next := *s
	if a.write > coldStart && next.odd == Nothing {
		next.odd = Over
	}
	next.flights[free] = flight{
		write: a.write, claim: a.claim, member: a.member, former: a.formerUID, rewritten: s.isRewritten(a),
	}
	e.emit(step, next)
}

// ask judges what the guard reads, or any of the things that it may read.
func (e *explorer) ask(s *state, a attempt) answer {
	q := s.ask(a)
	out := e.variant.judge(e.answers, q)
	for _, late := range e.variant.late(q) {
		if out.allowed {
			return out
		}
		out = e.variant.judge(e.answers, late)
	}
	return out
}

// isRewritten: the claim has a sandbox that it named once, and names another one now;
// its status names neither.
func (s *state) isRewritten(a attempt) bool {
	c := s.claims[a.claim]
	if c.names == namesNone {
		return false
	}
	for m := range uint8(maxMembers) {
		if a.write.onMember() && m == a.member {
			continue
		}
		has := s.members[m].there && s.members[m].owner == ofClaim+a.claim
		if has && c.names != 1+m && c.status != 1+m {
			return true
		}
	}
	return false
}

// stores commits each write that is on its way.
func (e *explorer) stores(s *state) {
	for i, f := range s.flights {
		switch {
		case f.write == noWrite:
		case f.write.onMember():
			e.storeBind(*s, i, f)
		case !s.claims[f.claim].cold:
			e.storeCold(*s, i, f)
		}
	}
}

func (e *explorer) storeBind(next state, i int, f flight) {
	step := Step{Act: Stored, attempt: attempt{write: f.write, claim: f.claim, member: f.member, formerUID: f.former}}
	if next.members[f.member].had {
		e.breaks(OneToOne, step)
		return
	}
	next.flights[i] = flight{}
	if f.former {
		// The garbage collector takes it for a claim that is gone.
		next.remove(f.member)
		e.emit(step, next)
		return
	}
	// What it was built from was looked at, and is nobody's business any more.
	next.members[f.member] = member{there: true, owner: ofClaim + f.claim, had: true}
	if next.target == 1+f.member && next.odd.aboutMember() {
		next.odd, next.target = Over, 0
	}
	e.written(&next, f.member)
	e.served(step, next, f)
}

func (e *explorer) storeCold(next state, i int, f flight) {
	next.flights[i] = flight{}
	if f.former {
		return
	}
	next.claims[f.claim].cold = true
	e.served(Step{Act: Stored, attempt: attempt{write: f.write, claim: f.claim}}, next, f)
}

// served looks at what a claim has after a write was stored. Where it has two, and two
// writes were on their way at once, the history ends: no admission can exclude that, and
// Freshbind reports such a claim. So it does where a choice was rewritten.
func (e *explorer) served(step Step, next state, f flight) {
	if next.sandboxes(f.claim) > 1 {
		known := f.overlap && !e.variant.NoOverlap || f.rewritten && !e.variant.NoRewriting
		if !known {
			e.breaks(OneToOne, step)
		}
		return
	}
	for i := range next.flights {
		if next.flights[i].write != noWrite && next.flights[i].claim == f.claim {
			next.flights[i].overlap = true
		}
	}
	e.emit(step, next)
}

// written: a Sandbox has another version, onto which no write goes that was admitted on
// the one before.
func (e *explorer) written(s *state, m uint8) {
	if e.variant.NoVersionLock {
		return
	}
	for i := range s.flights {
		if s.flights[i].write.onMember() && s.flights[i].member == m {
			s.flights[i] = flight{}
		}
	}
}

// deletes: the pool controller deletes whatever it has once seen idle, and Freshbind
// what its leader, or one of before, has.
func (e *explorer) deletes(s *state) {
	for m := range uint8(e.bounds.Members) {
		if !s.members[m].there || s.members[m].owner == ofNobody {
			continue
		}
		step := Step{attempt: attempt{member: m}}
		if step.Act = DeletedByPool; e.variant.Unprotected || !s.isProtected(m) {
			e.delete(*s, step)
		}
		// What was seen idle is the version that is stored only while it is idle.
		if step.Act = DeletedByUs; e.variant.NoPreconditions || s.members[m].owner == ofPool {
			e.delete(*s, step)
		}
	}
}

func (e *explorer) delete(next state, step Step) {
	if next.isInUse(step.member) {
		e.breaks(InUse, step)
		return
	}
	next.remove(step.member)
	e.emit(step, next)
}

// writesByHand are the person's own, which look like binds and cold starts.
func (e *explorer) writesByHand(s *state) {
	if s.odd != Nothing || e.bounds.Quiet || e.variant.Person != Nothing {
		return
	}
	for c := range uint8(e.bounds.Claims) {
		for m := range uint8(e.bounds.Members) {
			if !s.members[m].there {
				continue
			}
			for _, w := range []write{bindAndEdit, bindAndSwapPod, bindToTwo} {
				e.admit(s, attempt{write: w, claim: c, member: m})
			}
		}
		e.admit(s, attempt{write: coldForTwo, claim: c, content: s.inForce})
		// Of a member that gets such an owner a policy takes care.
		for rev := range s.revisions() {
			e.admit(s, attempt{write: foreign, claim: c, content: rev})
		}
	}
}
