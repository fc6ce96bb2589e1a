package freshness

import (
	"slices"
	"time"
)

// ReplacementPolicy is what decides, beside a member itself, whether it is about to be
// deleted. The controller that deletes and the scheduler's filter ask the same
// one: a pod that were only refused a node would be parked, and an autoscaler
// that knows nothing of the refusal would buy nodes for it.
type ReplacementPolicy struct {
	Strategy Strategy
	// Paused: the pool's owner wants nothing replaced.
	Paused bool
	// Failed: the rollout has made no progress for too long.
	Failed bool
	// Suspended: unknown members are not to be replaced.
	Suspended bool
	// Understood: a member was born of the revision in force that is Current.
	Understood bool
	// Started is when the revision in force began to be rolled out.
	Started time.Time
}

// ReplacementPolicy returns what holds for all members of the pool. It is as good as
// Rollout.State is.
func (s PoolState) ReplacementPolicy() ReplacementPolicy {
	return ReplacementPolicy{
		Strategy: s.Strategy, Paused: s.Paused, Failed: s.Rollout.State == Failed,
		Suspended: s.Suspended, Started: s.Rollout.Started,
		Understood: slices.ContainsFunc(s.Members, func(m MemberState) bool {
			return m.Class == Current && m.bornSince(s.Rollout.Started)
		}),
	}
}

// Outdated reports whether the rollout is to replace the member, now or later.
func (o ReplacementPolicy) Outdated(m MemberState) bool {
	switch {
	case m.Leaving:
		return false
	case m.Class == Unknown:
		return !o.Suspended && (o.Understood || !m.bornSince(o.Started))
	}
	return m.Class == Stale || m.Class == Former
}

// DeletesNow reports whether the member goes at once, whatever the other members are:
// a Unusable one always, and one that is not ready on a node that is to be empty; under
// Recreate every old one; under RollingUpdate every old
// one that is not ready and whose Pod nobody holds back, so that what capacity
// there is goes to fresh ones first. A Former one is nobody's under any strategy,
// so that it goes where nothing is replaced otherwise; but not from a paused pool.
func (o ReplacementPolicy) DeletesNow(m MemberState) bool {
	switch {
	case m.Class == Unusable, m.OnCordonedNode && m.ReadySince.IsZero():
		return !m.Leaving
	case m.Class == Former && o.Strategy != Recreate && o.Strategy != RollingUpdate:
		return !m.Leaving && !o.Paused
	case !o.replaces() || !o.Outdated(m):
		return false
	case o.Strategy == RollingUpdate:
		return m.ReadySince.IsZero() && !m.Gated
	}
	return true
}

// heldByPause reports whether the pause keeps members that would go otherwise.
func (o ReplacementPolicy) heldByPause(members []MemberState) bool {
	return o.Paused && slices.ContainsFunc(members, func(m MemberState) bool { return m.Class == Former && !m.Leaving })
}

// replaces reports whether members are deleted for what they are built from.
func (o ReplacementPolicy) replaces() bool {
	if o.Paused || o.Failed && o.Strategy == RollingUpdate {
		return false
	}
	return o.Strategy == Recreate || o.Strategy == RollingUpdate
}

// DeletesBarePod reports whether a bare Pod that a pool has is about to be deleted,
// by the verdict Idle on it: no claim can be given it, for its own lasting fault.
func (v Verdict) DeletesBarePod() bool { return !v.Allowed && v.Reason.Fault() == FaultMember }

// PodDisposition is what will become of a member whose Pod waits for a node.
type PodDisposition struct {
	// Pool is the one that has the member; "" when none is known to.
	Pool, PoolUID string
	// ToBeDeleted: it is about to be deleted.
	ToBeDeleted bool
	// Found and Expected name revisions by their template-spec-hash; "" where
	// none is known.
	Found, Expected string
}
