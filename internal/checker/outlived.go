package checker

import (
	"slices"
	"time"
)

// end makes final what became of a claim's sandbox after the bind.
func (h *History) end(p *pending) {
	if p.final == nil || p.ended {
		return
	}
	h.outlived(p.final, p)
	p.ended = true
}

// outlived finds a sandbox, or a Pod of it, that the pool's controller deleted after the bind, while the claim lived and
// nothing had come to its end: such a delete was meant for a member. Recordings that do not say who wrote decide nothing. Nor
// do OpenKruise's: one account makes members, gives up what a claim could not use, and makes Pods anew.
func (h *History) outlived(b *Bind, p *pending) {
	o := h.sandboxes[p.sandbox]
	if o == nil || !p.warm || !o.born {
		return
	}
	maker := o.line.entries[0]
	if pool, member := h.member(maker.state); !member || maker.by == "" || pool.group == groupKruise {
		return
	}
	b.Findings = slices.Clone(b.Findings)
	defer b.rank()
	if e := ending(&o.line, p.rv, func(s sandboxState) bool { return s.deleting }); e != nil {
		if e.by == maker.by && h.inUse(p, o, e.first, e.seen) {
			b.add(Killed, "", "%s deleted the sandbox (rv %s) while the claim had it", e.by, e.first)
		}
		return
	}
	for _, uid := range h.podsOfSandbox[p.sandbox] {
		pod := h.pods[uid]
		if pod == nil {
			continue
		}
		e := ending(&pod.line, p.rv, func(s podState) bool { return s.deleting })
		if e != nil && e.by == maker.by && h.inUse(p, o, e.first, e.seen) {
			b.add(Killed, "", "%s deleted the sandbox's Pod (rv %s) while the claim had it", e.by, e.first)
			return
		}
	}
}

// ending is the first version after rv that is gone, or being deleted when the one before was not.
func ending[S any](line *timeline[S], rv RV, deleting func(S) bool) *entry[S] {
	if before, ok := line.before(rv); ok && (before.gone || deleting(before.state)) {
		return nil
	}
	for i := range line.entries {
		if e := &line.entries[i]; rv.Before(e.first) && (e.gone || deleting(e.state)) {
			return e
		}
	}
	return nil
}

// inUse reports whether the claim surely had the sandbox, and both had no reason to end, when something was deleted at rv.
func (h *History) inUse(p *pending, o *object[sandboxState], rv RV, seen time.Time) bool {
	claim := h.claims[p.claim]
	if claim == nil {
		return false
	}
	asked, ok := claim.line.before(rv)
	if !ok || asked.gone || asked.state.deleting || claim.line.mayBeGone(rv) || asked.state.expires || past(asked.state.ends, seen) {
		return false
	}
	held, ok := o.line.before(rv)
	return ok && !held.gone && !held.state.suspended && !past(held.state.ends, seen) && slices.Contains(h.claimsOf(held.state), p.claim)
}

// past reports whether a time may be over; what cannot be read may be.
func past(text string, now time.Time) bool {
	if text == "" {
		return false
	}
	at, err := time.Parse(time.RFC3339, text)
	return err != nil || !now.Before(at)
}
