package freshness

// Deletion is the delete of a claim's sandbox by the pool's controller, without
// a UID precondition: what a controller does that believes, from a late cache,
// to delete an idle member (kubernetes-sigs/agent-sandbox#1575).
type Deletion struct {
	Sandbox string
	// Owner is the claim that the sandbox belongs to.
	Owner Owner
	// Claim is the claim as stored; nil when it does not exist.
	Claim *Claim
	// ClaimExpired and SandboxExpired: their own time is up, so that the same
	// controller ends them on purpose.
	ClaimExpired, SandboxExpired bool
}

// JudgeDelete refuses the delete while the claim lives and neither its time nor
// the sandbox's is up: then nobody but the pool can have been meant.
func JudgeDelete(d Deletion) Verdict {
	switch {
	case d.Owner.Kind != OwnedByClaim, d.Claim == nil, d.Claim.UID != d.Owner.UID, d.Claim.Deleting,
		d.ClaimExpired, d.SandboxExpired:
		return Verdict{Allowed: true, Reason: Fresh}
	}
	return *deny(MemberClaimed, "%s is no idle member any more: claim %s, which is alive, has it or is about to get it",
		d.Sandbox, d.Owner.Name)
}
