package freshness

// Reason says why a verdict is not plainly "fresh". The set is closed; the same
// words are used by events, metrics, audit annotations and the command line.
type Reason string

const (
	// Fresh is the reason of an allowed write that nothing speaks against.
	Fresh Reason = "Fresh"
	// StaleRevision: built from a revision of the template that is known and
	// not in force.
	StaleRevision Reason = "StaleRevision"
	// UnknownRevision: equal to no revision of the template that is known.
	UnknownRevision Reason = "UnknownRevision"
	// MemberTerminating: the Sandbox is being deleted.
	MemberTerminating Reason = "MemberTerminating"
	// PodTerminating: the Sandbox's Pod is being deleted.
	PodTerminating Reason = "PodTerminating"
	// PodFinished: the Sandbox's Pod has ended or is gone.
	PodFinished Reason = "PodFinished"
	// PodForeign: the Pod of that name is not the Sandbox's, not the one whose
	// addresses its status shows, was there before the Sandbox, or has another name.
	PodForeign Reason = "PodForeign"
	// PodModified: the Pod has ephemeral containers, so somebody worked in it.
	PodModified Reason = "PodModified"
	// PodNotYet: the Sandbox never had a Pod.
	PodNotYet Reason = "PodNotYet"
	// NodeLeaving: the Pod's node is being deleted, drained, or not ready.
	NodeLeaving Reason = "NodeLeaving"
	// MemberUsed: the Sandbox had a claim before.
	MemberUsed Reason = "MemberUsed"
	// MemberClaimed: the Sandbox belongs to another claim.
	MemberClaimed Reason = "MemberClaimed"
	// OwnerMismatch: the write gives the Sandbox to more than one claim, or to
	// something else beside one, or to another kind of owner with a claim's UID.
	OwnerMismatch Reason = "OwnerMismatch"
	// ClaimHoldsAnother: the claim has a sandbox already.
	ClaimHoldsAnother Reason = "ClaimHoldsAnother"
	// ClaimNamesAnother: the claim, as stored, names another sandbox.
	ClaimNamesAnother Reason = "ClaimNamesAnother"
	// ClaimGone: the claim does not exist or is being deleted.
	ClaimGone Reason = "ClaimGone"
	// ClaimReplaced: a later claim of the same name exists.
	ClaimReplaced Reason = "ClaimReplaced"
	// PoolGone: the pool does not exist, is another one, or is being deleted.
	PoolGone Reason = "PoolGone"
	// PoolMismatch: the member's pool is not the claim's.
	PoolMismatch Reason = "PoolMismatch"
	// TemplateGone: the template in force does not exist (yet).
	TemplateGone Reason = "TemplateGone"
	// TemplateMismatch: built from another template than the pool refers to now.
	TemplateMismatch Reason = "TemplateMismatch"
	// NotAMember: the Sandbox belongs to no pool.
	NotAMember Reason = "NotAMember"
	// BlueprintChanged: the write that binds also changes what the sandbox is
	// built from.
	BlueprintChanged Reason = "BlueprintChanged"
)

// Fault says whose a denial is, and with it what can mend it.
type Fault int

const (
	// FaultNobody passes by itself or is the writer's; the member stays as it is.
	FaultNobody Fault = iota
	// FaultClaim is the claim's; the member is for others to take.
	FaultClaim
	// FaultMember is the member's and lasts: nobody can ever take it.
	FaultMember
)

var faults = map[Reason]Fault{
	StaleRevision:     FaultMember,
	UnknownRevision:   FaultMember,
	MemberTerminating: FaultMember,
	PodTerminating:    FaultMember,
	PodFinished:       FaultMember,
	PodForeign:        FaultMember,
	PodModified:       FaultMember,
	NodeLeaving:       FaultMember,
	MemberUsed:        FaultMember,
	MemberClaimed:     FaultMember,
	PoolGone:          FaultMember,
	TemplateMismatch:  FaultMember,
	NotAMember:        FaultMember,
	ClaimHoldsAnother: FaultClaim,
	ClaimNamesAnother: FaultClaim,
	ClaimGone:         FaultClaim,
	ClaimReplaced:     FaultClaim,
	PoolMismatch:      FaultClaim,
}

// Fault returns whose fault a denial for this reason is.
func (r Reason) Fault() Fault { return faults[r] }

// Reasons returns all reasons, for closed label sets and for documentation.
func Reasons() []Reason {
	return []Reason{
		Fresh, StaleRevision, UnknownRevision, MemberTerminating, PodTerminating, PodFinished, PodForeign, PodModified,
		PodNotYet, NodeLeaving, MemberUsed, MemberClaimed, OwnerMismatch, ClaimHoldsAnother, ClaimNamesAnother, ClaimGone, ClaimReplaced,
		PoolGone, PoolMismatch, TemplateGone, TemplateMismatch, NotAMember, BlueprintChanged,
	}
}
