package checker

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claimed finds a claim that was gone, or had chosen another Sandbox, before the bind was admitted.
func (j *judging) claimed() {
	e, ok := j.claim.line.at(j.admit.lo)
	if !ok {
		e = &j.claim.line.entries[0]
	}
	switch later := j.h.claimOfName(j.claim, j.p.rv); {
	case (e.gone || e.state.deleting) && later != nil:
		j.bind.add(WrongClaim, ReasonClaimReplaced, "the claim was another one of that name by then")
	case e.gone, e.state.deleting:
		j.bind.add(WrongClaim, ReasonClaimGone, "the claim was gone or being deleted")
	}
	if !j.p.warm {
		return
	}
	// It may have chosen the member in between: then that choice is the last write before the bind was admitted.
	others := j.claim.line.within(j.admit.lo, j.p.rv)
	another := func(e *entry[claimState]) bool { return e.state.names != "" && e.state.names != j.sandbox.name }
	if len(others) > 0 && !slices.ContainsFunc(others, func(e *entry[claimState]) bool { return !another(e) }) {
		j.bind.add(WrongClaim, ReasonClaimNamesAnother, "the claim had chosen sandbox %s", others[len(others)-1].state.names)
	}
}

// claimOfName returns a claim of the same name that was born later, before rv.
func (h *History) claimOfName(claim *object[claimState], rv RV) *object[claimState] {
	for _, uid := range h.claimsOfName[name{claim.namespace, claim.name}] {
		o := h.claims[uid]
		at, _, born := o.bornAt()
		if born && uid != claim.uid && at.Before(rv) {
			if end, ended := claim.end(); ended && end.Before(at) {
				return o
			}
		}
	}
	return nil
}

// owned looks at the owners that the bind wrote. Upstream asks for the controller's UID only, so any kind will do for it.
func (j *judging) owned() {
	if o, ok := j.now.owner(j.p.claim); ok && !o.isClaim() {
		j.bind.add(OwnerMismatch, ReasonOwnerMismatch, "the claim has it by a reference to %s %s", o.kind, o.name)
	}
	before := map[types.UID]bool{}
	if j.prev != nil {
		for _, uid := range j.h.claimsOf(j.prev.state) {
			before[uid] = true
		}
	}
	for _, o := range j.now.owners {
		switch {
		case o.uid == j.p.claim:
		case j.h.isClaim(o) && before[o.uid]:
			j.bind.add(Duplicate, ReasonMemberClaimed, "the sandbox belongs to claim %s as well", o.name)
		case j.h.isClaim(o):
			j.bind.add(OwnerMismatch, ReasonOwnerMismatch, "the same write gave it to claim %s as well", o.name)
		case o.controller, o.isPool():
			j.bind.add(OwnerMismatch, ReasonOwnerMismatch, "the write left it to %s %s as well", o.kind, o.name)
		}
	}
}

// holding finds a claim with two Sandboxes, a Sandbox that is taken from a claim, and one that comes back after use.
func (j *judging) holding() {
	j.holdsOthers()
	if j.prev == nil {
		return
	}
	had := j.h.claimsOf(j.prev.state)
	if len(had) > 0 && len(j.h.claimsOf(j.now)) == 1 {
		j.bind.add(Duplicate, ReasonMemberClaimed, "the sandbox was taken from claim %s", j.h.claimName(j.prev.state))
	}
	if len(had) == 0 && !j.recycled() {
		j.reused()
	}
}

// holdsOthers finds as many Sandboxes of the claim as it may have.
func (j *judging) holdsOthers() {
	held, may := 0, j.asked.mayHold()
	others := j.h.sandboxesOfClaim[j.p.claim]
	if may == anyNumber {
		others = nil
	}
	for _, uid := range others {
		other := j.h.sandboxes[uid]
		if other == nil || uid == j.p.sandbox {
			continue
		}
		e, ok := other.line.before(j.p.rv)
		if ok && !e.gone && !e.state.deleting && !other.line.mayBeGone(j.p.rv) && slices.Contains(j.h.claimsOf(e.state), j.p.claim) {
			held++
			if held >= may {
				j.bind.add(Duplicate, ReasonClaimHoldsAnother, "the claim holds sandbox %s already", other.name)
			}
		}
	}
}

func (h *History) claimName(s sandboxState) string {
	for _, o := range s.owners {
		if h.isClaim(o) {
			return o.name
		}
	}
	return ""
}

func (j *judging) reused() {
	for _, e := range j.sandbox.line.entries {
		if e.first.Before(j.p.rv) && len(j.h.claimsOf(e.state)) > 0 {
			j.bind.add(UsedMember, ReasonMemberUsed, "the sandbox was used by claim %s (rv %s) before", j.h.claimName(e.state), e.first)
			return
		}
	}
}

// workedIn finds a Pod that somebody attached a container to. That is wrong under every strategy: it says nothing of the
// content, but what was done in the Pod reaches the claim.
func (j *judging) workedIn() {
	pod, now := j.itsPod()
	if pod == nil || !now.ephemeral {
		return
	}
	const what = "its Pod had ephemeral containers: somebody worked in it"
	if e, ok := pod.line.at(j.admit.lo); ok && e.state.ephemeral {
		j.bind.add(UsedMember, ReasonPodModified, what)
	} else {
		j.bind.add(Raced, ReasonPodModified, what+" while the bind was under way")
	}
}

// belonging checks that the member was one of the claim's pool, in the claim's namespace. A pool that was replaced while
// the bind was under way counts under either identity.
func (j *judging) belonging() {
	if j.claim.namespace != j.sandbox.namespace {
		j.bind.add(ForeignMember, ReasonPoolMismatch, "the claim is in namespace %s", j.claim.namespace)
	}
	pool, ok := j.prev.state.controller()
	switch {
	case ok && j.h.isClaim(pool):
		return // taken from another claim: a Duplicate, found by holding
	case !ok:
		j.bind.add(ForeignMember, ReasonNotAMember, "no pool controlled the sandbox")
		return
	case !pool.isPool():
		j.bind.add(ForeignMember, ReasonNotAMember, "%s %s controlled the sandbox, not a pool", pool.kind, pool.name)
		return
	}
	j.ofItsPool(pool)
}

// ofItsPool checks that the pool which had the member is there, and one that the claim could get it of.
func (j *judging) ofItsPool(pool owner) {
	sameUID := func(e *entry[poolState]) bool { return e.state.uid == pool.uid }
	switch why := j.notAskedFor(pool); {
	case why != "":
		j.bind.add(ForeignMember, ReasonPoolMismatch, "%s", why)
	case !j.poolEver(pool, sameUID):
		j.bind.add(ForeignMember, ReasonPoolGone, "the sandbox is of an earlier pool %s (uid %s)", pool.name, pool.uid)
	case !j.poolEver(pool, func(e *entry[poolState]) bool { return sameUID(e) && !e.gone && !e.state.deleting }):
		j.bind.add(ForeignMember, ReasonPoolGone, "the sandbox's pool %s was gone or being deleted", pool.name)
	}
}

// notAskedFor says why the claim could not get members of the pool; "" where it could.
func (j *judging) notAskedFor(pool owner) string {
	asked, specific := j.asked.specificPool()
	switch {
	case specific && pool.name != asked:
		return fmt.Sprintf("the sandbox is of pool %s, the claim asks for pool %s", pool.name, asked)
	case specific:
		return ""
	case j.asked.pool == "none":
		return "the claim asks for no pool (warmpool: none)"
	case !j.poolEver(pool, func(e *entry[poolState]) bool { return e.state.template == j.asked.template }):
		return fmt.Sprintf("the sandbox is of pool %s, which is not one of template %s", pool.name, j.asked.template)
	case !j.poolEver(pool, func(e *entry[poolState]) bool { return !e.state.byName }):
		return fmt.Sprintf("the sandbox is of pool %s, which claims get by its name only", pool.name)
	}
	return ""
}

// poolEver reports whether the pool was so at some moment at which the bind can have been admitted. A pool that the
// recording does not hold is given the benefit of the doubt.
func (j *judging) poolEver(o owner, so func(*entry[poolState]) bool) bool {
	seen := j.h.pools[name{j.sandbox.namespace, o.name}].within(j.admit.lo, j.p.rv)
	return len(seen) == 0 || slices.ContainsFunc(seen, so)
}

// alive finds members that were dead for as long as the bind can have been admitted. One that was so only for a part of that
// time raced: it died while the bind was under way, or came to life, as Pods are made and nodes return when nobody waits.
func (j *judging) alive() {
	if j.prev.state.deleting {
		j.bind.add(DeadMember, ReasonMemberTerminating, "the sandbox was being deleted")
	}
	j.lived()
}

// lived does so with its Pod.
func (j *judging) lived() {
	class, first, message := j.podAt(j.admit.lo)
	if first == reasonPodUnknown {
		j.bind.unjudged("%s", message)
		return
	}
	lived, last, later := first == "", first, message
	for _, rv := range j.moments() {
		_, last, later = j.podAt(rv)
		lived = lived || last == ""
	}
	switch {
	case first != "" && !lived:
		j.bind.add(class, first, "%s", message)
	case first != "":
		j.bind.add(Raced, first, "%s until the bind was under way", message)
	case last != "" && last != ReasonPodNotYet && last != reasonPodUnknown:
		j.bind.add(Raced, last, "%s while the bind was under way", later)
	}
}

// reasonPodUnknown stands for a Pod of which a partial recording holds nothing. It is in no report.
const reasonPodUnknown Reason = "PodUnknown"

// podAt says what was wrong with the member's Pod at rv.
func (j *judging) podAt(rv RV) (class Class, why Reason, message string) {
	if j.bare != nil {
		return j.barePodAt(rv)
	}
	class, why, message = NotYet, ReasonPodNotYet, "it never had a Pod"
	switch {
	case j.prev.state.ips != "" && j.h.options.Partial:
		class, why, message = Unjudged, reasonPodUnknown, "whether its Pod lived is not known: no write to it is in the log"
	case j.prev.state.ips != "":
		class, why, message = DeadMember, ReasonPodFinished, "its Pod was gone"
	}
	for _, uid := range j.h.podsOfName[name{j.sandbox.namespace, j.prev.state.podName}] {
		o := j.h.pods[uid]
		if o == nil {
			continue
		}
		e, ok := o.line.at(rv)
		if !ok {
			continue
		}
		end, how := ended(e)
		switch own := e.state.sandbox == j.p.sandbox; {
		case !own && e.gone:
		case !own:
			class, why, message = DeadMember, ReasonPodForeign, "its Pod was not its own"
		case end != "":
			class, why, message = DeadMember, end, how
		case j.ranForAnother(o, rv):
			return DeadMember, ReasonPodForeign, "its Pod was another sandbox's before"
		default:
			return j.livePodAt(rv, e.state)
		}
	}
	return class, why, message
}

// ranForAnother: until rv the Pod had been another Sandbox's, too, whose end it outlived.
func (j *judging) ranForAnother(pod *object[podState], rv RV) bool {
	return slices.ContainsFunc(pod.line.entries, func(e entry[podState]) bool {
		return !rv.Before(e.first) && e.state.sandbox != "" && e.state.sandbox != j.p.sandbox
	})
}

// ended says how a Pod came to its end, and nothing of one that goes on. Another one may have taken its place.
func ended(e *entry[podState]) (why Reason, message string) {
	switch {
	case e.gone:
		return ReasonPodFinished, "its Pod was gone"
	case e.state.deleting:
		return ReasonPodTerminating, "its Pod was being deleted"
	case e.state.phase == corev1.PodFailed || e.state.phase == corev1.PodSucceeded:
		return ReasonPodFinished, "its Pod had ended (" + string(e.state.phase) + ")"
	}
	return "", ""
}

// livePodAt says what was wrong with the member's own Pod that went on.
func (j *judging) livePodAt(rv RV, pod podState) (class Class, why Reason, message string) {
	if j.prev.state.ips != "" && pod.ips != "" && j.prev.state.ips != pod.ips {
		return DeadMember, ReasonPodForeign, "its status showed the addresses of another Pod"
	}
	if leaves := j.h.nodeLeaves(pod, rv); leaves != "" {
		return DeadMember, ReasonNodeLeaving, "its node was about to go: " + leaves
	}
	return Fresh, "", ""
}
