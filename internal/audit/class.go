package audit

import "slices"

// Class says how a bind turned out.
type Class string

const (
	// Fresh: the content is the one in force just before the bind.
	Fresh Class = "Fresh"
	// Raced: the update may have come after the bind was admitted.
	Raced Class = "Raced"
	// Tolerated: stale, and the pool asked for it (OnReplenish, or RollingUpdate with admit: any).
	Tolerated Class = "Tolerated"
	// Unjudged: the recording does not hold what a judgement takes; the message says what is missing.
	Unjudged Class = "Unjudged"
	// Stale: admitted after the update that made its content stale.
	Stale Class = "Stale"
	// DeadMember: the Sandbox or its Pod was being deleted, finished or gone before the bind was admitted.
	DeadMember Class = "DeadMember"
	// Duplicate: the claim held another live Sandbox already, or the Sandbox another claim.
	Duplicate Class = "Duplicate"
	// ForeignMember: not a member of the claim's pool, or in another namespace.
	ForeignMember Class = "ForeignMember"
	// UsedMember: the Sandbox had a claim earlier in its life.
	UsedMember Class = "UsedMember"
)

// Classes lists all classes, the better before the worse.
func Classes() []Class {
	return []Class{Fresh, Raced, Tolerated, Unjudged, Stale, DeadMember, Duplicate, ForeignMember, UsedMember}
}

// Bad reports whether the class is Stale or worse.
func (c Class) Bad() bool { return c.severity() >= Stale.severity() }

func (c Class) severity() int { return slices.Index(Classes(), c) }
