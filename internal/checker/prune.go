package checker

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Prune forgets what is over: claims and Sandboxes that were deleted before rv, with their Pods, after counting them. Judge
// keeps reporting the counts and findings; Report.Binds and Report.Claims lose them. Nothing that is not Settled goes.
func (h *History) Prune(before RV) {
	if !h.Settled(before) {
		return
	}
	h.settle(before)
	h.endBinds(before)
	sums := summaries(h.closed)
	bound := map[types.UID]Bind{}
	for _, p := range h.binds {
		if p.final != nil {
			bound[p.claim] = *p.final
		}
	}
	for uid, claim := range h.claims {
		if !over(claim, before) {
			continue
		}
		if c, counts := h.claimRecord(uid, bound); counts {
			sums.of(c.Namespace).countClaim(c)
		}
		delete(h.claims, uid)
	}
	dropIndex(h.claimsOfName, h.claims)
	h.binds = slices.DeleteFunc(h.binds, func(p *pending) bool {
		if p.final == nil || h.claims[p.claim] != nil {
			return false
		}
		sums.of(p.final.Namespace).countBind(*p.final)
		if h.options.KeepBinds {
			h.kept = append(h.kept, *p.final)
		}
		if p.final.Class != Fresh {
			h.findings = append(h.findings, *p.final)
		}
		return true
	})
	h.dropSandboxes(sums, before)
	clear(h.contents)
	clear(h.specs)
}

// endBinds notes what became of sandboxes, before they are forgotten, or their claims.
func (h *History) endBinds(before RV) {
	for _, p := range h.binds {
		claim, o := h.claims[p.claim], h.sandboxes[p.sandbox]
		if claim == nil || over(claim, before) || o == nil || over(o, before) {
			h.end(p)
		}
	}
}

// settle makes the judgements final that no later event can change.
func (h *History) settle(before RV) {
	h.binds = slices.DeleteFunc(h.binds, func(p *pending) bool { return !h.isBind(p) && !before.Before(p.rv) })
	for _, p := range h.binds {
		if p.final == nil && h.isBind(p) && !before.Before(p.rv) {
			b := h.judge(p)
			b.BesideReady = h.coldBesideReady(p)
			p.final = &b
		}
	}
}

func over[S any](o *object[S], before RV) bool {
	end, ok := o.end()
	return ok && end.Before(before)
}

func (h *History) dropSandboxes(sums summaries, before RV) {
	for uid, o := range h.sandboxes {
		if !over(o, before) {
			continue
		}
		h.countMember(o, sums.of(o.namespace))
		for _, pod := range h.podsOfSandbox[uid] {
			delete(h.pods, pod)
		}
		delete(h.podsOfSandbox, uid)
		delete(h.sandboxes, uid)
	}
	h.dropPods(before)
	dropIndex(h.takersOfPod, h.sandboxes)
	dropIndex(h.sandboxesOfPool, h.sandboxes)
	dropIndex(h.sandboxesOfClaim, h.sandboxes)
}

// dropPods forgets Pods that are over, but for those of a Sandbox that is not: they say what it ran in.
func (h *History) dropPods(before RV) {
	for uid, o := range h.pods {
		if last, ok := o.line.latest(); ok && over(o, before) && h.sandboxes[last.state.sandbox] == nil {
			delete(h.pods, uid)
		}
	}
	dropIndex(h.podsOfName, h.pods)
}

// dropIndex forgets what is not kept any more, and the keys that nothing is left of.
func dropIndex[K comparable, S any](index map[K][]types.UID, kept map[types.UID]*object[S]) {
	for key, of := range index {
		of = slices.DeleteFunc(of, func(uid types.UID) bool { return kept[uid] == nil })
		if index[key] = of; len(of) == 0 {
			delete(index, key)
		}
	}
}
