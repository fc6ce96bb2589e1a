package checker

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func (h *History) claimUIDs() []types.UID {
	out := make([]types.UID, 0, len(h.claims))
	for uid := range h.claims {
		out = append(out, uid)
	}
	slices.SortFunc(out, func(a, b types.UID) int {
		x, y := h.claims[a], h.claims[b]
		if c := strings.Compare(x.namespace+"/"+x.name, y.namespace+"/"+y.name); c != 0 {
			return c
		}
		return strings.Compare(string(a), string(b))
	})
	return out
}

func firstBinds(binds []Bind) map[types.UID]Bind {
	out := map[types.UID]Bind{}
	for _, b := range binds {
		if have, ok := out[b.Claim.UID]; !ok || b.RV.Before(have.RV) {
			out[b.Claim.UID] = b
		}
	}
	return out
}

// claimRecord does not count a claim that was there from the start and was not bound since.
func (h *History) claimRecord(uid types.UID, bound map[types.UID]Bind) (c ClaimRecord, counts bool) {
	o := h.claims[uid]
	c = ClaimRecord{Namespace: o.namespace, Claim: Ref{o.name, o.uid}, Created: o.created}
	var born bool
	c.CreatedRV, c.CreatedSeen, born = o.bornAt()
	b, isBound := bound[uid]
	if isBound {
		c.BoundRV, c.BoundSeen, c.Warm = b.RV, b.SeenAt, b.Warm
	}
	for _, e := range o.line.entries {
		if e.state.ready && !e.gone {
			c.ReadyRV, c.ReadySeen = e.first, e.seen
			break
		}
	}
	return c, born || isBound
}

// countMembers counts what happened to members: births, deletes before any claim, and hiding.
func (h *History) countMembers(sums summaries) {
	for _, o := range h.sandboxes {
		h.countMember(o, sums.of(o.namespace))
	}
}

func (h *History) countMember(o *object[sandboxState], s *Summary) {
	first := o.line.entries[0]
	if pool, ok := h.member(first.state); ok && o.born {
		s.Births++
		if fresh, known := h.freshMember(o, pool, &first, first.first); known && !fresh {
			s.StaleBirths++
		}
	}
	for i := range o.line.entries {
		e := &o.line.entries[i]
		if _, member := h.member(e.state); !member {
			continue
		}
		if e.gone {
			s.MemberDeletes++
		} else if i > 0 && o.line.entries[i-1].state.shown && !e.state.shown && !e.state.deleting {
			s.Hidden++
		}
	}
}

// freshMember compares a member's content with what its pool demanded just before rv.
func (h *History) freshMember(o *object[sandboxState], pool owner, e *entry[sandboxState], rv RV) (fresh, known bool) {
	d := demands{h: h, namespace: o.namespace, pool: pool.name}
	want, ok := d.newest(rv)
	if !ok || want.err != nil || e.state.err != nil || !d.certain(rv, want.template) {
		return false, false
	}
	return want.content != nil && h.injectedInto(o.namespace, pool.name, rv).same(e.state.content, want.content), true
}

// coldBesideReady reports whether a claim was cold-started although a member of its pool had been there for it, ready,
// shown, fresh and wanted by nobody, for at least the configured time.
func (h *History) coldBesideReady(p *pending) bool {
	claim := h.claims[p.claim]
	if p.warm || p.bare || p.lost || claim == nil {
		return false
	}
	asked, ok := claim.line.before(p.rv)
	if !ok || !asked.state.plain() {
		return false
	}
	for key, line := range h.pools {
		e, ok := line.before(p.rv)
		if !ok || e.gone || key.namespace != claim.namespace || !asked.state.servedBy(key.name, e.state) {
			continue
		}
		for _, uid := range h.sandboxesOfPool[e.state.uid] {
			if o := h.sandboxes[uid]; o != nil && h.stoodReady(o, owner{name: key.name, uid: e.state.uid}, p) {
				return true
			}
		}
	}
	return false
}

func (s claimState) servedBy(pool string, state poolState) bool {
	if named, specific := s.specificPool(); specific {
		return named == pool
	}
	return s.template != "" && s.template == state.template
}

// stoodReady looks at one member. A member that a claim named then, or got soon after, was on its way to that claim.
func (h *History) stoodReady(o *object[sandboxState], pool owner, p *pending) bool {
	var since time.Time
	ok := false
	for i := range o.line.entries {
		e := &o.line.entries[i]
		if !e.first.Before(p.rv) {
			if len(h.claimsOf(e.state)) > 0 && e.seen.Sub(p.seen) < h.options.BesideReady {
				return false
			}
			continue
		}
		good := !e.gone && e.state.ready && e.state.shown && !e.state.deleting && h.isMemberOf(e.state, pool.uid)
		if good && !ok {
			since = e.seen
		}
		ok = good
	}
	if !ok || p.seen.Sub(since) < h.options.BesideReady {
		return false
	}
	last, _ := o.line.before(p.rv)
	fresh, known := h.freshMember(o, pool, last, p.rv)
	return known && fresh && !h.namedByClaim(o, p)
}

// namedByClaim reports whether a claim that held nothing yet had chosen the member. The names that v0.4.6 leaves on a claim
// which was served otherwise do not count.
func (h *History) namedByClaim(o *object[sandboxState], p *pending) bool {
	for uid, claim := range h.claims {
		e, ok := claim.line.before(p.rv)
		if ok && uid != p.claim && !e.gone && claim.namespace == o.namespace && e.state.names == o.name && !h.holds(uid, p.rv) {
			return true
		}
	}
	return false
}

func (h *History) holds(claim types.UID, rv RV) bool {
	return slices.ContainsFunc(h.sandboxesOfClaim[claim], func(uid types.UID) bool {
		o := h.sandboxes[uid]
		if o == nil {
			return false
		}
		e, ok := o.line.before(rv)
		return ok && !e.gone && slices.Contains(h.claimsOf(e.state), claim)
	})
}
