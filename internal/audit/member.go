package audit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// holding finds a claim with two Sandboxes, a Sandbox with two claims, and a Sandbox that comes back after use.
func (j *judging) holding() {
	for _, uid := range j.h.sandboxesOfClaim[j.p.claim] {
		other := j.h.sandboxes[uid]
		if other == nil || uid == j.p.sandbox {
			continue
		}
		e, ok := other.line.before(j.p.rv)
		if ok && !e.gone && !e.state.deleting && owns(e.state, j.p) {
			j.bind.add(Duplicate, "the claim holds sandbox %s already", other.name)
		}
	}
	for _, o := range j.now.owners {
		if o.isClaim() && o.uid != j.p.claim {
			j.bind.add(Duplicate, "the sandbox belongs to claim %s as well", o.name)
		}
	}
	if j.prev == nil {
		return
	}
	if held := j.prev.state.claims(); len(held) > 0 && len(j.now.claims()) == 1 {
		j.bind.add(Duplicate, "the sandbox was taken from claim %s", j.prev.state.claimNames())
		return
	}
	if len(j.prev.state.claims()) == 0 {
		j.reused()
	}
}

func owns(s sandboxState, p *pending) bool {
	return slices.Contains(s.claims(), p.claim)
}

func (s sandboxState) claimNames() string {
	for _, o := range s.owners {
		if o.isClaim() {
			return o.name
		}
	}
	return ""
}

func (j *judging) reused() {
	for _, e := range j.sandbox.line.entries {
		if e.first.Before(j.p.rv) && len(e.state.claims()) > 0 {
			j.bind.add(UsedMember, "the sandbox was used by claim %s (rv %s) before", e.state.claimNames(), e.first)
			return
		}
	}
}

// belonging checks that the member was one of the claim's pool, in the claim's namespace. A pool that was replaced while
// the bind was under way counts under either identity.
func (j *judging) belonging() {
	if j.claim.namespace != j.sandbox.namespace {
		j.bind.add(ForeignMember, "the claim is in namespace %s", j.claim.namespace)
	}
	controller, ok := j.prev.state.controller()
	switch {
	case ok && controller.isClaim():
		return // taken from another claim: a Duplicate, found by holding
	case !ok:
		j.bind.add(ForeignMember, "no pool controlled the sandbox")
		return
	case !controller.isPool():
		j.bind.add(ForeignMember, "%s %s controlled the sandbox, not a pool", controller.kind, controller.name)
		return
	}
	pool, specific := j.asked.specificPool()
	switch {
	case !specific && j.asked.pool == "none":
		j.bind.add(ForeignMember, "the claim asks for no pool (warmpool: none)")
	case specific && controller.name != pool:
		j.bind.add(ForeignMember, "the sandbox is of pool %s, the claim asks for pool %s", controller.name, pool)
	case !specific && !j.poolEver(controller, func(s poolState) bool { return s.template == j.asked.template }):
		j.bind.add(ForeignMember, "the sandbox is of pool %s, which is not one of template %s", controller.name, j.asked.template)
	case !j.poolEver(controller, func(s poolState) bool { return s.uid == controller.uid }):
		j.bind.add(ForeignMember, "the sandbox is of an earlier pool %s (uid %s)", controller.name, controller.uid)
	}
}

// poolEver reports whether the pool was so at some moment at which the bind can have been admitted. A pool that the
// recording does not hold is given the benefit of the doubt.
func (j *judging) poolEver(o owner, so func(poolState) bool) bool {
	seen := j.h.pools[name{j.sandbox.namespace, o.name}].within(j.admit.lo, j.p.rv)
	return len(seen) == 0 || slices.ContainsFunc(seen, func(e *entry[poolState]) bool { return so(e.state) })
}

// alive finds members that were dead before the bind was admitted. One that died while the bind was under way raced.
func (j *judging) alive() {
	if j.prev.state.deleting {
		j.bind.add(DeadMember, "the sandbox was being deleted")
	}
	if why := j.podDead(j.admit.lo, true); why != "" {
		j.bind.add(DeadMember, "%s", why)
	} else if why := j.podDead(j.p.rv, false); why != "" {
		j.bind.add(Raced, "%s while the bind was under way", why)
	}
}

// podDead says what was wrong with the member's Pod at rv. A member that never had a Pod is not dead.
func (j *judging) podDead(rv RV, inclusive bool) string {
	why := ""
	for _, uid := range j.h.podsOfSandbox[j.p.sandbox] {
		o := j.h.pods[uid]
		if o == nil || o.name != j.prev.state.podName {
			continue
		}
		e, ok := o.line.before(rv)
		if inclusive {
			e, ok = o.line.at(rv)
		}
		if !ok || e.state.sandbox != j.p.sandbox {
			continue
		}
		switch {
		case e.gone:
			why = "its Pod was gone"
		case e.state.deleting:
			why = "its Pod was being deleted"
		case e.state.phase == corev1.PodFailed || e.state.phase == corev1.PodSucceeded:
			why = "its Pod had ended (" + string(e.state.phase) + ")"
		default:
			return ""
		}
	}
	return why
}
