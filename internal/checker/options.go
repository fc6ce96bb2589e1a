package checker

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// DefaultBesideReady is how long a member must have stood ready before a cold start beside it counts as a symptom of
// ghosts. Longer than the 2 s for which upstream v0.5.6 waits for a member's addresses.
const DefaultBesideReady = 5 * time.Second

// Options shape the judgement. Strategy, Mode and Floors are what Freshbind's configuration says, if there is one.
type Options struct {
	// BesideReady is how long a member must have been ready, shown and fresh when a claim cold-started beside it, for
	// that start to be counted as cold beside ready. 0 means DefaultBesideReady.
	BesideReady time.Duration
	// Strategy holds for pools that say none; empty means OnReplenish, upstream's own.
	Strategy string
	// Mode holds where nothing is said; empty for none.
	Mode string
	// Partial: no LIST began the recording, so that what it does not hold may exist all the same.
	Partial bool
	// KeepBinds has Report.Binds name also what was pruned.
	KeepBinds bool
	// Floors are what pools and namespaces do not go below.
	Floors []Floor
}

// Floor is the least that holds in the namespaces it selects.
type Floor struct {
	Namespaces labels.Selector
	Enforce    bool
	// Strategy is RollingUpdate or Recreate; empty for none.
	Strategy string
}

const modeEnforce = "enforce"

// mode is what holds in a namespace; empty where nobody says anything.
func (o Options) mode(ns namespaceState) string {
	for _, f := range o.Floors {
		if f.Enforce && f.Namespaces.Matches(labels.Set(ns.labels)) {
			return modeEnforce
		}
	}
	if enforcement := ns.labels[keyEnforcement]; enforcement != "" {
		return enforcement
	}
	return o.Mode
}

// strict orders strategies; one of the platform's own promises nothing.
var strict = map[string]int{"OnReplenish": 1, "RollingUpdate": 2, "Recreate": 3}

// strategy resolves the order that Freshbind documents: the pool's annotation, its spec, the configured default, and never
// less than a floor. An annotation that means nothing, or that asks upstream's own Recreate to roll, counts as Recreate; a
// strategy in the spec that is not known is the platform's business, not ours.
func (o Options) strategy(p poolState, ns namespaceState) strategy {
	s := p.chosen(o.Strategy)
	for _, f := range o.Floors {
		if strict[f.Strategy] > strict[s.name] && f.Namespaces.Matches(labels.Set(ns.labels)) {
			s = strategy{name: f.Strategy, tolerates: f.Strategy == "RollingUpdate" && p.admit == "any"}
		}
	}
	return s
}
