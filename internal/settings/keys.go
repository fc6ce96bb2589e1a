package settings

import "slices"

const (
	// Domain is that of every key of Freshbind's.
	Domain = "freshbind.dev"
	// Prefix is that of every key of Freshbind's.
	Prefix = Domain + "/"
)

// Inputs: what people say by annotations of pools and templates. EnforcementKey is
// a label of namespaces too.
const (
	// EnforcementKey is the label of a namespace, and the annotation of a pool,
	// that says its mode. A pool can only tighten what its namespace says. It is a
	// label, too, of what was made while its pool said so: admission policies know
	// no pools.
	EnforcementKey = Prefix + "enforcement"
	// StrategyKey names what happens to stale members.
	StrategyKey = Prefix + "rollout-strategy"
	// MaxUnavailableKey bounds a step of a rollout.
	MaxUnavailableKey = Prefix + "max-unavailable"
	// MinReadySecondsKey is how long a member has to be ready to count as available.
	MinReadySecondsKey = Prefix + "min-ready-seconds"
	// ProgressDeadlineKey is how long a rollout may go without progress.
	ProgressDeadlineKey = Prefix + "progress-deadline"
	// PausedKey, with the value "true", stops a rollout.
	PausedKey = Prefix + "paused"
	// RestartedAtKey makes stale what is older than the time that it names.
	RestartedAtKey = Prefix + "restarted-at"
	// InjectedPathsKey lists the fields that something else in the cluster adds.
	InjectedPathsKey = Prefix + "injected-paths"
	// ClaimsKey on a pool, with the value "by-name": only claims that name the pool
	// take its members, not those that take any pool of their template. It says
	// nothing in releases whose claims cannot name a pool.
	ClaimsKey = Prefix + "claims"
	// RepairKey, with the value "false": stale births, and stale cold starts of the
	// pool's claims, are refused, not repaired.
	RepairKey = Prefix + "repair"
)

// Outputs: what Freshbind writes.
const (
	// StampKey is the label that names, on a member and on its Pod, the revision
	// of the template that it was built from. It is an index for people and
	// selectors; no verdict reads it.
	StampKey = Prefix + "template-spec-hash"
	// BoundToKey is the annotation of a Sandbox with the UID of the claim that
	// it belongs, or once belonged, to.
	BoundToKey = Prefix + "bound-to"
	// CreatedByKey is the annotation, with the value CreatedByPool, of a Sandbox
	// that was created by a pool's controller, as the API server knows it. Nobody
	// else can set it, and nobody changes it.
	CreatedByKey = Prefix + "created-by"
	// CreatedByPool is the only value of CreatedByKey.
	CreatedByPool = "pool-controller"
	// RepairedKey is the annotation of a cold start, or of a member, that was
	// rewritten when it was created: from which revision to which.
	RepairedKey = Prefix + "repaired"
	// SelfTestKey is the annotation with which the object of a dry run asks for
	// the answer of mode enforce. Nothing that is stored has it.
	SelfTestKey = Prefix + "self-test"
	// AdmitKey is the annotation of a pool under RollingUpdate that says what its
	// claims are given: "fresh" or "any". Missing or unreadable is "fresh".
	AdmitKey = Prefix + "admit"
	// AttributionKey is the annotation of a pool that names the revision in force
	// for which attribution is suspended.
	AttributionKey = Prefix + "attribution-suspended"
	// RolloutStateKey is the annotation of a pool with the state of its rollout in
	// one word, for `kubectl wait --for=jsonpath`.
	RolloutStateKey = Prefix + "rollout-state"
	// RolloutReasonKey is the annotation that says why the rollout is in that state,
	// in one word.
	RolloutReasonKey = Prefix + "rollout-reason"
	// RolloutRevisionKey is the annotation that names the revision which state and
	// reason are about.
	RolloutRevisionKey = Prefix + "rollout-observed-revision"
	// RolloutStatusKey is the annotation that has all of it as JSON.
	RolloutStatusKey = Prefix + "rollout-status"
	// RequeuedAtKey is the annotation of a claim, or of a Pod, that changes when its
	// controller, or scheduler, should look at it again, which watches nothing else
	// that the answer depends on. Its value is the time, RFC 3339.
	RequeuedAtKey = Prefix + "requeued-at"
	// ShownAsKey is the annotation of a hidden member with what the label said by which
	// it is hidden, where that cannot be told otherwise.
	ShownAsKey = Prefix + "shown-as"
	// TemplateUIDLabel is on a recorded revision, with the UID of its template.
	TemplateUIDLabel = Prefix + "template-uid"
)

var outputs = []string{AdmitKey, AttributionKey, RolloutStateKey, RolloutReasonKey, RolloutRevisionKey, RolloutStatusKey}

// Outputs are the annotations of a pool that Freshbind itself writes.
func Outputs() []string { return slices.Clone(outputs) }

// IsOutput reports whether Freshbind itself writes this annotation of a pool.
func IsOutput(key string) bool { return slices.Contains(outputs, key) }
