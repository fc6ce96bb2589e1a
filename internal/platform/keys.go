package platform

const (
	// Domain is that of every key of Freshbind's.
	Domain = "freshbind.dev"
	// EnforcementKey is the label of a namespace, and the annotation of a pool,
	// that says its mode. A pool can only tighten what its namespace says. It is a
	// label, too, of what was made while its pool said so: admission policies know
	// no pools.
	EnforcementKey = "freshbind.dev/enforcement"
	// StampKey is the label that names, on a member and on its Pod, the revision
	// of the template that it was built from. It is an index for people and
	// selectors; no verdict reads it.
	StampKey = "freshbind.dev/template-spec-hash"
	// BoundToKey is the annotation of a Sandbox with the UID of the claim that
	// it belongs, or once belonged, to.
	BoundToKey = "freshbind.dev/bound-to"
	// CreatedByKey is the annotation, with the value CreatedByPool, of a Sandbox
	// that was created by a pool's controller, as the API server knows it. Nobody
	// else can set it, and nobody changes it.
	CreatedByKey = "freshbind.dev/created-by"
	// CreatedByPool is the only value of CreatedByKey.
	CreatedByPool = "pool-controller"
	// RepairedKey is the annotation of a cold start, or of a member, that was
	// rewritten when it was created: from which revision to which.
	RepairedKey = "freshbind.dev/repaired"
	// SelfTestKey is the annotation with which the object of a dry run asks for
	// the answer of mode enforce. Nothing that is stored has it.
	SelfTestKey = "freshbind.dev/self-test"
	// AdmitKey is the annotation of a pool under RollingUpdate that says what its
	// claims are given: "fresh" or "any". Missing or unreadable is "fresh".
	AdmitKey = "freshbind.dev/admit"
	// AttributionKey is the annotation of a pool that names the revision in force
	// for which attribution is suspended.
	AttributionKey = "freshbind.dev/attribution-suspended"
	// RolloutStateKey is the annotation of a pool with the state of its rollout in
	// one word, for `kubectl wait --for=jsonpath`.
	RolloutStateKey = "freshbind.dev/rollout-state"
	// RolloutReasonKey is the annotation that says why the rollout is in that state,
	// in one word.
	RolloutReasonKey = "freshbind.dev/rollout-reason"
	// RolloutRevisionKey is the annotation that names the revision which state and
	// reason are about.
	RolloutRevisionKey = "freshbind.dev/rollout-observed-revision"
	// RolloutStatusKey is the annotation that has all of it as JSON.
	RolloutStatusKey = "freshbind.dev/rollout-status"
)
