package checker

import "fmt"

// strategy is what a pool asks for when its template changes.
type strategy struct {
	name string
	// description is how it is shown, if not by its name.
	description string
	// tolerates: stale binds are what the pool asked for.
	tolerates bool
}

// String is the strategy's name as its user would write it.
func (s strategy) String() string {
	if s.description != "" {
		return s.description
	}
	return s.name
}

// chosen is what annotation, spec and default come to.
func (p poolState) chosen(byDefault string) strategy {
	chosen := p.annotated
	if chosen == "" {
		chosen = p.strategy
	}
	if chosen == "" && p.rolls {
		return strategy{name: "RollingUpdate", description: "the platform's own", tolerates: p.admit == "any"}
	}
	if chosen == "" {
		chosen = byDefault
	}
	switch chosen {
	case "", "OnReplenish":
		return strategy{name: "OnReplenish", tolerates: true}
	case "Recreate":
		return strategy{name: "Recreate"}
	case "RollingUpdate":
		if p.annotated != "" && p.strategy == "Recreate" {
			return strategy{name: "Recreate", description: "Recreate (in the spec, which no RollingUpdate goes with)"}
		}
		if p.annotated != "" || p.strategy == "" {
			return strategy{name: "RollingUpdate", tolerates: p.admit == "any"}
		}
	}
	if p.annotated != "" {
		return strategy{name: "Recreate", description: fmt.Sprintf("Recreate (%s %q is not known)", keyStrategy, p.annotated)}
	}
	return strategy{name: chosen, description: chosen + " (not known)", tolerates: true}
}

// tolerance tells whether the pool asked for stale binds: just before the bind, or at least at some moment of the time in
// which the bind can have been admitted.
func (j *judging) tolerance() (now, earlier bool) {
	line := j.h.pools[name{j.bind.Namespace, j.bind.Pool}]
	namespaces := j.h.namespaces[j.bind.Namespace]
	tolerates := func(p poolState, ns namespaceState) bool { return j.h.options.strategy(p, ns).tolerates }
	if e, ok := line.before(j.p.rv); ok {
		now = tolerates(e.state, j.h.namespaceAt(j.bind.Namespace, j.p.rv))
	}
	for _, e := range line.within(j.admit.lo, j.p.rv) {
		earlier = earlier || tolerates(e.state, j.h.namespaceAt(j.bind.Namespace, j.p.rv))
		for _, ns := range namespaces.within(j.admit.lo, j.p.rv) {
			earlier = earlier || tolerates(e.state, ns.state)
		}
	}
	return now, earlier
}
