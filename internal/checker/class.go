package checker

import "slices"

// Class says how a bind turned out.
type Class string

const (
	// Fresh: the content is the one in force just before the bind.
	Fresh Class = "Fresh"
	// NotYet: the Sandbox never had a Pod, or the template did not exist. It passes by itself.
	NotYet Class = "NotYet"
	// Raced: the update may have come after the bind was admitted.
	Raced Class = "Raced"
	// Tolerated: stale, and the pool asked for it (OnReplenish, or RollingUpdate with admit: any).
	Tolerated Class = "Tolerated"
	// Unjudged: the recording does not hold what a judgement takes; the message says what is missing.
	Unjudged Class = "Unjudged"
	// Stale: admitted after the update that made its content stale.
	Stale Class = "Stale"
	// Killed: the pool's controller deleted the Sandbox or its Pod after the bind, while the claim lived.
	Killed Class = "KilledAfterBind"
	// WrongClaim: the claim was gone before the bind was admitted, or had chosen another Sandbox.
	WrongClaim Class = "WrongClaim"
	// DeadMember: the Sandbox or its Pod was being deleted, finished or gone before the bind was admitted, the Pod was not
	// its own, or its node was about to go.
	DeadMember Class = "DeadMember"
	// Duplicate: the claim held another live Sandbox already, or the Sandbox another claim.
	Duplicate Class = "Duplicate"
	// OwnerMismatch: one write gave the Sandbox to several claims, or to something else beside the claim, or the claim has it
	// by a reference that names no claim.
	OwnerMismatch Class = "OwnerMismatch"
	// ForeignMember: not a member of the claim's pool, or in another namespace.
	ForeignMember Class = "ForeignMember"
	// UsedMember: the Sandbox had a claim earlier in its life, or somebody had worked in its Pod. No strategy tolerates it.
	UsedMember Class = "UsedMember"
)

// Classes lists all classes, the better before the worse.
func Classes() []Class {
	return []Class{Fresh, NotYet, Raced, Tolerated, Unjudged, Stale, Killed, WrongClaim, DeadMember, Duplicate, OwnerMismatch, ForeignMember, UsedMember}
}

// Bad reports whether the class is Stale or worse.
func (c Class) Bad() bool { return c.severity() >= Stale.severity() }

func (c Class) severity() int { return slices.Index(Classes(), c) }
