package settings

import "github.com/freshbind/freshbind/internal/freshness"

// Defaults are what the cluster's administrator says: what holds where nobody else
// says anything, and what nobody goes below.
type Defaults struct {
	Mode     Mode
	Strategy freshness.Strategy
	Floors   Floors
}

// ModeOf returns the mode that holds in a namespace with these labels, for a pool
// that says this of its own; "" for nothing. What cannot be understood counts as not
// said.
func (d Defaults) ModeOf(namespace map[string]string, pool string) Mode {
	if Mode(pool) == Enforce || d.Floors.Enforces(namespace) {
		return Enforce
	}
	if mode, err := ParseMode(namespace[EnforcementKey]); err == nil {
		return mode
	}
	return d.Mode
}

// StrategyOf returns the strategy that holds for a pool: what its annotation says, or
// its spec, and not less than the least strict one of its namespace; "" for any.
func (d Defaults) StrategyOf(annotation, spec string, least freshness.Strategy) freshness.Strategy {
	return stricter(resolveStrategy(annotation, spec, d.Strategy), least)
}
