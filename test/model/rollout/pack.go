package rollout

import "fmt"

// key is a state, packed.
type key [3]uint64

// packer puts one value after the other, none across two words.
type packer struct {
	to   key
	word int
	used int
}

func (p *packer) put(v uint8, width int) {
	if int(v) >= 1<<width {
		panic(fmt.Sprintf("%d does not fit into %d bits", v, width))
	}
	if p.used+width > 64 {
		p.word, p.used = p.word+1, 0
	}
	p.to[p.word] |= uint64(v) << p.used
	p.used += width
}

func (p *packer) flags(of ...bool) {
	for _, v := range of {
		bit := uint8(0)
		if v {
			bit = 1
		}
		p.put(bit, 1)
	}
}

type unpacker struct {
	from key
	word int
	used int
}

func (u *unpacker) take(width int) uint8 {
	if u.used+width > 64 {
		u.word, u.used = u.word+1, 0
	}
	v := uint8(u.from[u.word] >> u.used & (1<<width - 1))
	u.used += width
	return v
}

func (u *unpacker) flags(of ...*bool) {
	for _, v := range of {
		*v = u.take(1) == 1
	}
}

// pack leaves out what is stored of members: that is what the cache shows, with what it
// does not show yet.
func (s *state) pack() key {
	p := packer{}
	for i := range s.members {
		m := &s.members[i]
		p.put(m.content, 2)
		p.flags(m.seen.there, m.seen.ready, m.seen.shown)
		p.put(uint8(m.since), 2)
		p.put(uint8(m.lastPlan), 2)
		p.flags(m.wasCurrent, m.leaving, m.readied, m.reshown)
	}
	for _, c := range s.pending {
		p.put(uint8(c.what), 3)
		p.put(c.slot, 3)
	}
	p.put(s.edits, 2)
	p.put(s.shown, 2)
	p.put(s.read, 2)
	p.put(s.readStored, 2)
	p.flags(s.back, s.broken, s.paused, s.planned, s.unseen, s.stalled, s.gone.fresh)
	p.put(s.gone.filled, 2)
	p.put(s.gone.lost, 2)
	p.put(s.others, 2)
	p.put(s.cause, 3)
	p.put(s.admit, 2)
	for _, g := range s.gaps {
		p.put(uint8(g), 2)
	}
	s.memory.pack(&p)
	s.stored.pack(&p)
	return p.to
}

func (p *progress) pack(to *packer) {
	to.flags(p.heldUp, p.overdue, p.freshLongAgo, p.await, p.inherited)
	to.put(p.revision, 2)
	to.put(p.state, 2)
	for _, g := range p.groups {
		to.put(g.ahead, 2)
		to.put(g.deleted, 2)
	}
}

func (k key) unpack() state {
	var s state
	u := unpacker{from: k}
	for i := range s.members {
		m := &s.members[i]
		m.content = u.take(2)
		u.flags(&m.seen.there, &m.seen.ready, &m.seen.shown)
		m.since, m.lastPlan = age(u.take(2)), planStatus(u.take(2))
		u.flags(&m.wasCurrent, &m.leaving, &m.readied, &m.reshown)
		m.stored = m.seen
	}
	for i := range s.pending {
		c := change{what: what(u.take(3))}
		c.slot = u.take(3)
		s.pending[i] = c
		if c.what != noChange {
			m := &s.members[c.slot]
			m.stored = m.stored.becomes(c.what)
		}
	}
	s.edits, s.shown, s.read, s.readStored = u.take(2), u.take(2), u.take(2), u.take(2)
	u.flags(&s.back, &s.broken, &s.paused, &s.planned, &s.unseen, &s.stalled, &s.gone.fresh)
	s.gone.filled, s.gone.lost = u.take(2), u.take(2)
	s.others, s.cause, s.admit = u.take(2), u.take(3), u.take(2)
	for i := range s.gaps {
		s.gaps[i] = gap(u.take(2))
	}
	s.memory.unpack(&u)
	s.stored.unpack(&u)
	return s
}

func (p *progress) unpack(from *unpacker) {
	from.flags(&p.heldUp, &p.overdue, &p.freshLongAgo, &p.await, &p.inherited)
	p.revision, p.state = from.take(2), from.take(2)
	for i := range p.groups {
		p.groups[i] = group{ahead: from.take(2), deleted: from.take(2)}
	}
}
