package audit

import "fmt"

// strategy is what a pool asks for when its template changes.
type strategy struct {
	name string
	// tolerates: stale binds are what the pool asked for.
	tolerates bool
}

// String is the strategy's name as its user would write it.
func (s strategy) String() string { return s.name }

// inForce resolves the order that Freshbind documents: the pool's annotation, its spec, OnReplenish. An annotation that
// means nothing counts as Recreate; a strategy in the spec that is not known is the platform's business, not ours.
func (p poolState) inForce() strategy {
	chosen := p.annotated
	if chosen == "" {
		chosen = p.strategy
	}
	switch chosen {
	case "", "OnReplenish":
		return strategy{"OnReplenish", true}
	case "Recreate":
		return strategy{"Recreate", false}
	case "RollingUpdate":
		return strategy{"RollingUpdate", p.admit == "any"}
	}
	if p.annotated != "" {
		return strategy{fmt.Sprintf("Recreate (%s %q is not known)", keyStrategy, p.annotated), false}
	}
	return strategy{chosen + " (not known)", true}
}

// tolerance tells whether the pool asked for stale binds: just before the bind, or at least at some moment of the time in
// which the bind can have been admitted.
func (j *judging) tolerance() (now, earlier bool) {
	line := j.h.pools[name{j.bind.Namespace, j.bind.Pool}]
	if e, ok := line.before(j.p.rv); ok {
		now = e.state.inForce().tolerates
	}
	for _, e := range line.within(j.admit.lo, j.p.rv) {
		earlier = earlier || e.state.inForce().tolerates
	}
	return now, earlier
}
