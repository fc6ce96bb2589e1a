package freshness

// ownerIsNoClaim: upstream knows owners by UID alone, so a controller of any
// kind that has a claim's UID is that claim.
func ownerIsNoClaim(s Snapshot) *Verdict {
	if s.Claim == nil || s.Claim.UID != s.ClaimRef.UID {
		return nil
	}
	return deny(OwnerMismatch, "the controller that %s is given has the UID of a claim, and another kind", s.Member.title())
}

// oneOwner: who has a sandbox besides the claim has not been judged, and would
// have what the claim was allowed.
func oneOwner(s Snapshot) *Verdict {
	if len(s.Besides) == 0 {
		return nil
	}
	switch o := s.Besides[0]; o.Kind {
	case OwnedByClaim:
		return deny(OwnerMismatch, "the write gives %s to claims %s and %s at once", s.Member.title(), s.ClaimRef.Name, o.Name)
	case OwnedByPool:
		return deny(OwnerMismatch, "the write gives %s to claim %s and keeps pool %s among its owners", s.Member.title(), s.ClaimRef.Name, o.Name)
	default:
		return deny(OwnerMismatch, "the write gives %s to claim %s and to another controller", s.Member.title(), s.ClaimRef.Name)
	}
}

// podKept: the Pod that was judged is the one that the sandbox goes on in, and it is the
// member's from its birth on. A Sandbox's controller makes a Pod of the Sandbox's name, so
// that somebody else has made a Pod of another name, or had it: the controller takes the
// one that the Sandbox names, once that is its own.
func podKept(s Snapshot) *Verdict {
	m := s.Member
	switch {
	case m.namesAnotherPod():
		return deny(PodForeign, "sandbox %s names pod %s as its own, which it has not made", m.Name, m.PodName)
	case m.ProposedPodName == "", m.ProposedPodName == m.PodName:
		return nil
	}
	return deny(BlueprintChanged, "the write changes the pod of %s from %s to %s", m.title(), m.PodName, m.ProposedPodName)
}
