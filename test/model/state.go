package model

// The largest cluster there is room for.
const (
	maxMembers = 3
	maxClaims  = 2
	maxFlights = 2
)

// Who has a sandbox. A claim is ofClaim plus its index.
const (
	ofPool uint8 = iota
	ofClaim
	_
	ofNobody
)

// Names that a claim may have written down: none, a member as 1 plus its index, or one
// that is gone.
const (
	namesNone uint8 = 0
	namesGone uint8 = 1 + maxMembers
)

// state is the cluster between two steps. Its objects are those that are stored; no
// cache is part of it, because every cache may show anything that ever was.
type state struct {
	// inForce is the template's revision, and other whether the second one ever was.
	inForce uint8
	other   bool
	// odd is how the person has interfered, and target 1 plus the index of the member
	// or claim that it still matters for.
	odd    Interference
	target uint8

	members [maxMembers]member
	claims  [maxClaims]claim
	// flights are writes that admission let through and that are not stored yet.
	flights [maxFlights]flight
}

// member is a sandbox that was born in the pool, with its Pod.
type member struct {
	there bool
	// content is the revision that its Pod was built from, while no claim has had it.
	content uint8
	owner   uint8
	// had: a claim has had it. The marks on it say the same.
	had bool
	// before: it was there before the person changed the pool, and no claim has had it.
	before bool
}

// claim is what is stored of a claim; whether it is there at all the interference says.
type claim struct {
	// names is the member that it has chosen, status the one that its status names.
	names, status uint8
	// cold: it has a cold-started sandbox, which has the claim's name.
	cold bool
}

// flight is a write on its way from admission to the store.
type flight struct {
	write  write
	claim  uint8
	member uint8
	// former: the claim that it was admitted for is gone, or another one by now.
	former bool
	// overlap: another write for the same claim was stored while this one was on its
	// way. rewritten: the claim had a sandbox whose name its choice no longer gave
	// when this one was admitted.
	overlap, rewritten bool
}

// write is a kind of write that is judged.
type write uint8

const (
	noWrite write = iota
	bind
	coldStart
	// The next are a person's own.
	bindAndEdit
	bindAndSwapPod
	bindToTwo
	coldForTwo
	foreign
)

// onMember reports whether it goes onto a Sandbox that there is; the others create one.
func (w write) onMember() bool {
	return w == bind || w == bindAndEdit || w == bindAndSwapPod || w == bindToTwo
}

// key packs a state into 58 bits, the topmost of which is always set.
type key uint64

type packer struct {
	bits key
}

func (p *packer) put(v uint8, width int) { p.bits = p.bits<<width | key(v) }

func (p *packer) flag(v bool) {
	p.bits <<= 1
	if v {
		p.bits |= 1
	}
}

func (s *state) pack() key {
	p := packer{1}
	p.put(s.inForce, 1)
	p.flag(s.other)
	p.put(uint8(s.odd), 5)
	p.put(s.target, 2)
	for i := range s.members {
		m := &s.members[i]
		p.flag(m.there)
		p.put(m.content, 1)
		p.put(m.owner, 2)
		p.flag(m.had)
		p.flag(m.before)
	}
	for i := range s.claims {
		p.put(s.claims[i].names, 3)
		p.put(s.claims[i].status, 2)
		p.flag(s.claims[i].cold)
	}
	for i := range s.flights {
		f := &s.flights[i]
		p.put(uint8(f.write), 3)
		p.put(f.claim, 1)
		p.put(f.member, 2)
		p.flag(f.former)
		p.flag(f.overlap)
		p.flag(f.rewritten)
	}
	return p.bits
}

type unpacker struct {
	bits key
}

func (u *unpacker) take(width int) uint8 {
	v := uint8(u.bits & (1<<width - 1))
	u.bits >>= width
	return v
}

func (u *unpacker) flag() bool { return u.take(1) == 1 }

// unpack takes the fields off in the opposite order.
func (k key) unpack() state {
	var s state
	u := unpacker{k}
	for i := maxFlights - 1; i >= 0; i-- {
		f := &s.flights[i]
		f.rewritten, f.overlap, f.former = u.flag(), u.flag(), u.flag()
		f.member, f.claim, f.write = u.take(2), u.take(1), write(u.take(3))
	}
	for i := maxClaims - 1; i >= 0; i-- {
		s.claims[i].cold, s.claims[i].status, s.claims[i].names = u.flag(), u.take(2), u.take(3)
	}
	for i := maxMembers - 1; i >= 0; i-- {
		m := &s.members[i]
		m.before, m.had = u.flag(), u.flag()
		m.owner, m.content, m.there = u.take(2), u.take(1), u.flag()
	}
	s.target, s.odd = u.take(2), Interference(u.take(5))
	s.other, s.inForce = u.flag(), u.take(1)
	return s
}

// canonical is the same for states that differ only in which member or claim is which,
// and in the order of what is on its way.
func (s *state) canonical() key {
	k := s.sorted().pack()
	both := s.flights[1].write != noWrite
	if both {
		k = min(k, s.turned().sorted().pack())
	}
	if swapped := s.swapped(); *swapped != *s {
		k = min(k, swapped.sorted().pack())
		if both {
			k = min(k, swapped.turned().sorted().pack())
		}
	}
	return k
}

// turned exchanges the two writes on their way.
func (s state) turned() *state {
	s.flights[0], s.flights[1] = s.flights[1], s.flights[0]
	return &s
}

// swapped exchanges the two claims.
func (s *state) swapped() *state {
	out := *s
	out.claims[0], out.claims[1] = s.claims[1], s.claims[0]
	for i := range out.members {
		if m := &out.members[i]; m.owner == ofClaim || m.owner == ofClaim+1 {
			m.owner = 2*ofClaim + 1 - m.owner
		}
	}
	for i := range out.flights {
		if f := &out.flights[i]; f.write != noWrite {
			f.claim = 1 - f.claim
		}
	}
	if s.odd.aboutClaim() && s.target != 0 {
		out.target = 3 - s.target
	}
	return &out
}

// sorted puts members in an order that does not depend on where they were.
func (s *state) sorted() *state {
	out := *s
	var marks [maxMembers]uint32
	for i := range marks {
		marks[i] = out.mark(uint8(i))
	}
	for i := 1; i < maxMembers; i++ {
		for j := i; j > 0 && marks[j] > marks[j-1]; j-- {
			marks[j], marks[j-1] = marks[j-1], marks[j]
			out.exchange(uint8(j), uint8(j-1))
		}
	}
	return &out
}

// mark is all that can be said of a member: what it is, and who refers to it.
func (s *state) mark(i uint8) uint32 {
	m, p := s.members[i], packer{1}
	p.flag(m.there)
	p.put(m.content, 1)
	p.put(m.owner, 2)
	p.flag(m.had)
	p.flag(m.before)
	for c := range s.claims {
		p.flag(s.claims[c].names == 1+i)
		p.flag(s.claims[c].status == 1+i)
	}
	for f := range s.flights {
		p.flag(s.flights[f].write.onMember() && s.flights[f].member == i)
	}
	p.flag(s.odd.aboutMember() && s.target == 1+i)
	return uint32(p.bits)
}

// exchange gives two members each other's place, and all that refers to them.
func (s *state) exchange(a, b uint8) {
	s.members[a], s.members[b] = s.members[b], s.members[a]
	other := func(ref *uint8, base uint8) {
		switch *ref {
		case base + a:
			*ref = base + b
		case base + b:
			*ref = base + a
		}
	}
	for c := range s.claims {
		other(&s.claims[c].names, 1)
		other(&s.claims[c].status, 1)
	}
	for f := range s.flights {
		if s.flights[f].write.onMember() {
			other(&s.flights[f].member, 0)
		}
	}
	if s.odd.aboutMember() {
		other(&s.target, 1)
	}
}
