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
	CreatedByKey  = "freshbind.dev/created-by"
	CreatedByPool = "pool-controller"
	// SelfTestKey is the annotation with which the object of a dry run asks for
	// the answer of mode enforce. Nothing that is stored has it.
	SelfTestKey = "freshbind.dev/self-test"
	// AdmitKey is the annotation of a pool under RollingUpdate that says what its
	// claims are given: "fresh" or "any". Missing or unreadable is "fresh".
	AdmitKey = "freshbind.dev/admit"
	// AttributionKey is the annotation of a pool that names the revision in force
	// for which attribution is suspended.
	AttributionKey = "freshbind.dev/attribution-suspended"
	// RolloutStateKey, RolloutReasonKey and RolloutRevisionKey are annotations of
	// a pool with the outcome of its rollout as plain words, for
	// `kubectl wait --for=jsonpath`; RolloutStatusKey has all of it as JSON.
	RolloutStateKey    = "freshbind.dev/rollout-state"
	RolloutReasonKey   = "freshbind.dev/rollout-reason"
	RolloutRevisionKey = "freshbind.dev/rollout-observed-revision"
	RolloutStatusKey   = "freshbind.dev/rollout-status"
)
