package freshness

import (
	"fmt"
	"slices"

	"github.com/freshbind/freshbind/internal/revision"
)

// maxShown bounds how many differing leaves a verdict's detail lists.
const maxShown = 3

// Judge decides on a snapshot. The first rule that speaks against the write
// gives the reason: first the claim's own faults, which leave the member to
// others, then the member's life, then what it belongs to, then its content.
func Judge(s Snapshot) Verdict {
	switch s.Operation {
	case ColdStart:
		return firstOf(s, claimLives, claimHoldsNone, templateInForce, contentIsCurrent)
	case Birth:
		return judgeBirth(s)
	case Idle:
		return firstOf(s, isMember, memberLives, belongs, podLives, templateInForce, contentIsCurrent, podIsCurrent)
	default:
		return firstOf(s, claimLives, isMember, claimWantsThis, claimHoldsNone, memberLives, blueprintKept,
			belongs, podLives, templateInForce, contentIsCurrent, podIsCurrent)
	}
}

// rule returns a verdict that ends the judging, or nil.
type rule func(Snapshot) *Verdict

func firstOf(s Snapshot, rules ...rule) Verdict {
	out := Verdict{Allowed: true, Reason: Fresh}
	if s.Template != nil {
		out.Expected = s.Template.Hash
		out.Found = out.Expected
	}
	for _, r := range rules {
		v := r(s)
		if v == nil {
			continue
		}
		if !v.Allowed {
			return *v
		}
		// A tolerated fault does not excuse another one that is not.
		out = *v
	}
	return out
}

func deny(r Reason, format string, args ...any) *Verdict {
	return &Verdict{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

func claimLives(s Snapshot) *Verdict {
	switch {
	case s.Claim == nil:
		return deny(ClaimGone, "claim %s does not exist", s.ClaimRef.Name)
	case s.Claim.UID != s.ClaimRef.UID:
		return deny(ClaimReplaced, "claim %s is another one now (uid %s, the write names %s)",
			s.ClaimRef.Name, s.Claim.UID, s.ClaimRef.UID)
	case s.Claim.Deleting:
		return deny(ClaimGone, "claim %s is being deleted", s.ClaimRef.Name)
	}
	return nil
}

func isMember(s Snapshot) *Verdict {
	c := s.Member.Controller
	switch {
	case c.Kind == OwnedByClaim:
		return deny(MemberClaimed, "sandbox %s belongs to claim %s", s.Member.Name, c.Name)
	case c.Kind != OwnedByPool:
		return deny(NotAMember, "sandbox %s belongs to no pool", s.Member.Name)
	case s.Member.Used:
		return deny(MemberUsed, "sandbox %s had a claim before", s.Member.Name)
	}
	return nil
}

// claimWantsThis: releases that write the choice into the claim first do so
// under optimistic lock, so the stored claim is the arbiter of which one of
// several members it gets.
func claimWantsThis(s Snapshot) *Verdict {
	switch {
	case slices.Contains(s.Claim.Names, s.Member.Name), len(s.Claim.Names) == 0 && !s.Member.NamedFirst:
		return nil
	case len(s.Claim.Names) == 0:
		return deny(ClaimNamesAnother, "claim %s names no sandbox, and has to name %s first", s.ClaimRef.Name, s.Member.Name)
	}
	return deny(ClaimNamesAnother, "claim %s names sandbox %s, not %s", s.ClaimRef.Name, s.Claim.Names[0], s.Member.Name)
}

func claimHoldsNone(s Snapshot) *Verdict {
	if len(s.Held) == 0 {
		return nil
	}
	return deny(ClaimHoldsAnother, "claim %s already holds sandbox %s", s.ClaimRef.Name, s.Held[0])
}

func memberLives(s Snapshot) *Verdict {
	if s.Member.Deleting {
		return deny(MemberTerminating, "sandbox %s is being deleted", s.Member.Name)
	}
	return nil
}

func blueprintKept(s Snapshot) *Verdict {
	if d := revision.Compare(s.Member.Content, s.Member.Proposed, revision.PathSet{}); len(d) > 0 {
		return deny(BlueprintChanged, "the write changes what sandbox %s is built from: %s",
			s.Member.Name, revision.Summary(d, maxShown))
	}
	return nil
}

func belongs(s Snapshot) *Verdict {
	switch {
	case s.Pool == nil:
		return deny(PoolGone, "pool %s does not exist", s.Member.Controller.Name)
	case s.Pool.UID != s.Member.Controller.UID:
		return deny(PoolGone, "pool %s is another one now", s.Pool.Name)
	case s.Pool.Deleting:
		return deny(PoolGone, "pool %s is being deleted", s.Pool.Name)
	case s.Operation == Bind && !s.Claim.asksFor(s.Pool):
		return deny(PoolMismatch, "claim %s asks for pool %q, sandbox %s is of pool %s",
			s.ClaimRef.Name, s.Claim.Pool, s.Member.Name, s.Pool.Name)
	case s.Member.Template != "" && s.Member.Template != s.Pool.Template:
		return deny(TemplateMismatch, "sandbox %s was built from template %s, pool %s refers to %s",
			s.Member.Name, s.Member.Template, s.Pool.Name, s.Pool.Template)
	}
	return nil
}

// asksFor reports whether the claim wants a member of this pool.
func (c *Claim) asksFor(p *Pool) bool {
	if c.Template != "" && c.Template != p.Template {
		return false
	}
	return c.AnyPool || c.Pool == p.Name
}

func podLives(s Snapshot) *Verdict {
	m, p := s.Member, s.Pod
	switch {
	case p == nil && len(m.PodIPs) == 0:
		return deny(PodNotYet, "sandbox %s has no pod yet", m.Name)
	case p == nil:
		return deny(PodFinished, "pod %s is gone", m.PodName)
	case p.ControllerUID != m.UID:
		return deny(PodForeign, "pod %s does not belong to sandbox %s", m.PodName, m.Name)
	case p.Deleting:
		return deny(PodTerminating, "pod %s is being deleted", m.PodName)
	case p.Finished:
		return deny(PodFinished, "pod %s has ended", m.PodName)
	case len(m.PodIPs) > 0 && !sameSet(m.PodIPs, p.IPs):
		return deny(PodForeign, "sandbox %s shows addresses %v, pod %s has %v", m.Name, m.PodIPs, m.PodName, p.IPs)
	case p.NodeLeaving != "":
		return deny(NodeLeaving, "pod %s is on a node that is about to go: %s", m.PodName, p.NodeLeaving)
	}
	return nil
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func templateInForce(s Snapshot) *Verdict {
	if s.Operation == ColdStart && s.Claim.Template == "" {
		if s.Pool == nil {
			return deny(PoolGone, "pool %s does not exist", s.Claim.Pool)
		}
		if s.Pool.Deleting {
			return deny(PoolGone, "pool %s is being deleted", s.Pool.Name)
		}
	}
	if s.Template == nil {
		return deny(TemplateGone, "the template in force does not exist")
	}
	if s.Operation == ColdStart && s.Member.Template != "" && s.Member.Template != s.Template.Name {
		return deny(TemplateMismatch, "sandbox %s is built from template %s, the template in force is %s",
			s.Member.Name, s.Member.Template, s.Template.Name)
	}
	return nil
}

func contentIsCurrent(s Snapshot) *Verdict {
	if s.Template.Unrenderable != "" {
		return tolerate(s, Verdict{
			Reason:   UnknownRevision,
			Found:    s.Member.Content.Hash(),
			Expected: s.Template.Hash,
			Detail:   "template " + s.Template.Name + " as it is now gives this claim no sandbox: " + s.Template.Unrenderable,
		})
	}
	return attribute(s, s.Member.Content, s.Injected, func(b revision.Blueprint) revision.Blueprint { return b })
}

// podIsCurrent compares the Pod itself once the member's spec was written to
// after its creation: edits of a Sandbox never reach an existing Pod
// (kubernetes-sigs/agent-sandbox#612).
func podIsCurrent(s Snapshot) *Verdict {
	if s.Member.Generation == 1 {
		return nil
	}
	return attribute(s, s.Pod.Content, s.PodInjected, revision.Blueprint.PodOnly)
}

// attribute compares content with the template in force and, when they differ,
// names the known revision that it equals.
func attribute(s Snapshot, content revision.Blueprint, injected revision.PathSet,
	part func(revision.Blueprint) revision.Blueprint,
) *Verdict {
	want := part(s.Template.Content)
	differences := revision.Compare(want, content, injected)
	if len(differences) == 0 {
		return nil
	}
	v := Verdict{
		Reason:   UnknownRevision,
		Found:    content.Hash(),
		Expected: s.Template.Hash,
		Detail:   revision.Summary(differences, maxShown),
	}
	for _, k := range s.Known {
		if k.Hash != v.Expected && revision.Equal(part(k.Content), content, injected) {
			v.Reason, v.Found = StaleRevision, k.Hash
			break
		}
	}
	return tolerate(s, v)
}

// RevisionOf names the revision that the member is built from, by its content.
func RevisionOf(s Snapshot) string {
	if s.Template == nil {
		return s.Member.Content.Hash()
	}
	if v := contentIsCurrent(s); v != nil {
		return v.Found
	}
	return s.Template.Hash
}

// PodRevisionOf names the revision that the Pod is built from, by its content:
// its Sandbox's, when it is what that Sandbox says.
func PodRevisionOf(s Snapshot) string {
	if revision.Equal(s.Member.Content.PodOnly(), s.Pod.Content, s.PodInjected) {
		return RevisionOf(s)
	}
	if s.Template == nil {
		return s.Pod.Content.Hash()
	}
	if v := attribute(s, s.Pod.Content, s.PodInjected, revision.Blueprint.PodOnly); v != nil {
		return v.Found
	}
	return s.Template.Hash
}

// tolerate turns a denial for staleness into the pool's own choice, where it
// made one. A cold start without a pool made none.
func tolerate(s Snapshot, v Verdict) *Verdict {
	if s.Pool != nil && ServesStale(s.Pool.Strategy, s.Pool.AdmitAny) {
		v.Allowed, v.Tolerated = true, true
	}
	return &v
}

// ServesStale reports whether a pool of this strategy chose to have stale
// members taken.
func ServesStale(st Strategy, admitAny bool) bool {
	return st == OnReplenish || st == PlatformOwned || st == RollingUpdate && admitAny
}

// judgeBirth refuses only what is known to be older than the template in force.
// A member that equals no revision is let through: were it refused, a webhook
// that injects a field would keep the pool empty for ever.
func judgeBirth(s Snapshot) Verdict {
	if s.Pool == nil || s.Pool.UID != s.Member.Controller.UID || s.Pool.Deleting || s.Template == nil {
		return Verdict{Allowed: true, Reason: Fresh, Found: s.Member.Content.Hash()}
	}
	v := firstOf(s, belongs, contentIsCurrent)
	if v.Reason == UnknownRevision {
		v.Allowed = true
	}
	return v
}
