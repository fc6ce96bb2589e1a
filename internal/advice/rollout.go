package advice

import (
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// platformRecreate is the strategy that the warm-pool system itself follows when
// a pool's spec names it: its own controller deletes stale members, and refuses
// to hand them out, whatever Freshbind is told.
const platformRecreate = string(freshness.Recreate)

// StalePolicy is what becomes of the stale members of a pool. The set is closed.
type StalePolicy string

const (
	// Deleted: they go at once.
	Deleted StalePolicy = "Deleted"
	// Replaced: they go step by step.
	Replaced StalePolicy = "Replaced"
	// Kept: they stay, and claims get them, because the pool says so.
	Kept StalePolicy = "Kept"
	// KeptInAudit: they stay, and claims get them, because nothing is enforced.
	KeptInAudit StalePolicy = "KeptInAudit"
	// Avoided: the pool's strategy cannot be read, so no claim gets them and
	// nothing deletes them.
	Avoided StalePolicy = "Avoided"
	// LeftToPlatform: the strategy in the pool's spec is not one that is known.
	LeftToPlatform StalePolicy = "LeftToPlatform"
)

// Rollout is what a pool, and the namespace that it is in, say about stale
// members.
type Rollout struct {
	// Annotation is the pool's freshbind.dev/rollout-strategy as written; Spec
	// its spec.updateStrategy.type; "" when there is none.
	Annotation, Spec string
	// Default is the strategy where neither says one.
	Default freshness.Strategy
	// Floor is the least strict strategy here; "" for any.
	Floor freshness.Strategy
	// Enforced: Freshbind denies and deletes here.
	Enforced bool
	// AdmitAny: while it rolls, the pool asks to serve stale members too.
	AdmitAny bool
}

// Strategy is the one that holds.
func (r Rollout) Strategy() freshness.Strategy {
	return settings.Defaults{Strategy: r.Default}.StrategyOf(r.Annotation, r.Spec, r.Floor)
}

// StalePolicy is what becomes of stale members.
func (r Rollout) StalePolicy() StalePolicy {
	if r.Spec == platformRecreate {
		return Deleted
	}
	strategy := r.Strategy()
	switch {
	case strategy == freshness.OnReplenish:
		return Kept
	case strategy == freshness.PlatformOwned:
		return LeftToPlatform
	case !r.Enforced:
		return KeptInAudit
	case r.unreadable():
		return Avoided
	case strategy == freshness.RollingUpdate:
		return Replaced
	}
	return Deleted
}

// ServesStale reports whether a claim may get a stale member.
func (r Rollout) ServesStale() bool {
	if r.Spec == platformRecreate {
		return false
	}
	return !r.Enforced || freshness.ServesStale(r.Strategy(), r.AdmitAny)
}

func (r Rollout) unreadable() bool {
	if r.Annotation == "" {
		return false
	}
	_, err := settings.ParseStrategy(r.Annotation)
	return err != nil
}

// Text says it of them, or of it when there is only one.
func (f StalePolicy) Text(count int) string {
	them, they := "them", "they are"
	if count == 1 {
		them, they = "it", "it is"
	}
	switch f {
	case Deleted:
		return "Recreate deletes " + them
	case Replaced:
		return "RollingUpdate replaces " + them + " step by step"
	case Kept:
		return "OnReplenish keeps serving " + them
	case KeptInAudit:
		return "mode audit keeps serving " + them
	case Avoided:
		return "rollout-strategy is unreadable, no claim gets " + them
	}
	return they + " left to the platform"
}
