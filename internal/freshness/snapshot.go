package freshness

import (
	"time"

	"github.com/freshbind/freshbind/internal/revision"
)

// Operation is the kind of write that is judged.
type Operation string

const (
	// Bind is the write after which a claim owns a Sandbox that it did not own
	// before.
	Bind Operation = "bind"
	// ColdStart is the CREATE of a Sandbox directly for a claim.
	ColdStart Operation = "coldstart"
	// Birth is the CREATE of a member by its pool.
	Birth Operation = "birth"
	// Release is the UPDATE after which a bare Pod is in no pool any more: the
	// first half of a bind in releases whose members are bare Pods.
	Release Operation = "release"
	// WarmStart is the CREATE of a Sandbox for a claim that names a bare Pod to
	// run in: the second half.
	WarmStart Operation = "warmstart"
	// ForeignController is the write after which something that is neither pool
	// nor claim controls a Sandbox that it did not control before.
	ForeignController Operation = "foreigncontroller"
	// Return is the write after which a pool has a Sandbox again that somebody had. What
	// is judged is whether the next one can be given it.
	Return Operation = "return"
	// Released is no write: may the claim that a bare Pod was released to still
	// take it?
	Released Operation = "released"
	// Idle is no write: could any claim of the pool take this member?
	Idle Operation = "idle"
	// Stored is no write: what is this member, by itself, its template and what a
	// cache shows of its Pod, if any, which is its images or (Pod.Whole) all? Whether it lives does not
	// matter.
	Stored Operation = "stored"
)

// OwnerKind classifies the controller of a Sandbox.
type OwnerKind string

const (
	// OwnedByNobody: it has no controller.
	OwnedByNobody OwnerKind = ""
	// OwnedByPool: it is a pool's member.
	OwnedByPool OwnerKind = "Pool"
	// OwnedByClaim: a claim has it.
	OwnedByClaim OwnerKind = "Claim"
	// OwnedByAnother: its controller is neither pool nor claim by its kind. The
	// platform may take it for a claim all the same, by its UID.
	OwnedByAnother OwnerKind = "Another"
)

// Owner is an owner reference, reduced to what is judged.
type Owner struct {
	Kind      OwnerKind
	Name, UID string
}

// Snapshot is everything that one verdict depends on. A nil pointer says that
// the object does not exist; whatever could not be read leaves no snapshot.
type Snapshot struct {
	Operation Operation
	Member    Member
	// ClaimRef is the claim that the write names; empty for Birth and Idle. For
	// ForeignController it is the controller, and Claim the claim of its UID.
	ClaimRef Owner
	Claim    *Claim
	// Besides are the claims, pools and other controllers that would own the
	// Sandbox together with the claim.
	Besides []Owner
	// Held are the live sandboxes, other than Member, that the claim controls.
	Held     []string
	Pool     *Pool
	Template *Template
	Pod      *Pod
	// Known are the older revisions of the template, rendered as Template is.
	Known []Known
	// Plain is the template as releases without secure defaults render it. It
	// is what the bare Pod of a WarmStart is built from, and will do for the
	// Sandbox as well as Template does; nil when it will not.
	Plain *Rendered
	// Injected and PodInjected are the paths at which a member and its Pod may
	// have leaves that the template has not.
	Injected, PodInjected revision.PathSet

	// work bounds the comparisons; nil for no bound.
	work *revision.Budget
}

// Member is the Sandbox, as it was before the write (for Birth and ColdStart:
// as it is to be created).
type Member struct {
	Name, UID  string
	Controller Owner
	Deleting   bool
	// Used: its marks say that it had a claim once.
	Used bool
	// NamedFirst: the release that built it writes a claim's choice into the
	// claim before it binds.
	NamedFirst bool
	// Generation is metadata.generation. At 1 its Pod was built from this very
	// content.
	Generation int64
	// Template is the name of the template it says it was built from; "" when
	// it does not say.
	Template string
	Content  revision.Blueprint
	// Proposed is its content after the write; used by Bind and Return only.
	Proposed revision.Blueprint
	// PodName is the Pod that it says is its own, "" when it says nothing, and
	// ProposedPodName the one after the write; used by Bind only.
	PodName, ProposedPodName string
	// PodIPs are the addresses its status shows.
	PodIPs []string
	// Bare: it is a Pod itself, without a Sandbox.
	Bare bool
	// Created is when it was born; zero for a member that is only to be.
	Created time.Time
	// ByHand: nothing proves that its pool's controller made it, so that somebody may
	// have chosen its name.
	ByHand bool
}

// namesAnotherPod reports whether it says that a Pod of another name is its own.
func (m Member) namesAnotherPod() bool { return m.PodName != "" && m.PodName != m.Name }

func (m Member) title() string {
	if m.Bare {
		return "pod " + m.Name
	}
	return "sandbox " + m.Name
}

// Claim is the claim as stored.
type Claim struct {
	UID      string
	Deleting bool
	// Pool is the name of the pool it asks for; "" when it asks for none.
	Pool string
	// Template is the template it names itself (v0.4.6 and older); "" when
	// its template is its pool's.
	Template string
	// AnyPool: every pool of Template will do.
	AnyPool bool
	// Names are the sandboxes that it says, outside its status, it was given.
	Names []string
}

// Pool is the pool as stored.
type Pool struct {
	Name, UID string
	Deleting  bool
	Template  string
	Strategy  Strategy
	// Replenishes: the platform's own controller leaves members alone that are not
	// what its cache says.
	Replenishes bool
	// AdmitAny: while it rolls, it asks to serve stale members too.
	AdmitAny bool
	// ByName: claims that will take any pool's member do not get its.
	ByName bool
	// Restarted: what was created until then is stale (a rotated secret, a
	// rebuilt tag); zero when no restart was asked for.
	Restarted time.Time
	// Suspended names the revision in force for which members that equal no
	// known revision are let through; "" for none.
	Suspended string
}

// Template is the template in force, rendered for the operation: as the pool
// would build a member now, or as a cold start of this claim would be built.
type Template struct {
	Name string
	// Hash names the revision in force; Content may differ from it by what a
	// claim adds to its cold start.
	Hash    string
	Content revision.Blueprint
	// Unrenderable says why no sandbox can be built from it for this claim.
	Unrenderable string
}

// Pod is the Pod that the member says is its own; for a ColdStart or a Birth the one
// that there is of its name.
type Pod struct {
	ControllerUID string
	// Generation is metadata.generation: above 1 it was written to. 0 where the API
	// server counts none.
	Generation int64
	// Whole: a cache shows all of it. Of Stored members only images are compared else.
	Whole bool
	// Ephemeral: it has ephemeral containers.
	Ephemeral bool
	Deleting  bool
	Finished  bool
	IPs       []string
	Content   revision.Blueprint
	// ClaimUID is the claim that it was released to, where it says so.
	ClaimUID string
	// Created is when it was born; zero where nobody asks.
	Created time.Time
	// NodeLeaving says why its node is about to go; "" when it is not, or when
	// the Pod is on none yet.
	NodeLeaving string
}

// Known is an older revision of the template.
type Known struct {
	Hash    string
	Content revision.Blueprint
}

// Verdict is the outcome.
type Verdict struct {
	Allowed bool
	Reason  Reason
	// Tolerated: stale, and allowed because the pool chose so.
	Tolerated bool
	// Found and Expected name revisions by their template-spec-hash.
	Found, Expected string
	// Detail is one line for people.
	Detail string
}
