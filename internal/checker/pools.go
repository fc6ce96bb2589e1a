package checker

import (
	"cmp"
	"slices"
	"time"
)

// PoolHistory is what a pool asked for over time.
type PoolHistory struct {
	Namespace string
	Pool      string
	// Strategy is the last one.
	Strategy string
	// Bands are in the order of time, none for a pool of which no template is known.
	Bands []Band
}

// Band is a span of time during which a pool asked for one revision.
type Band struct {
	From, Until time.Time
	Revision    Revision
}

// Pools returns the pools of the history, by namespace and name.
func (h *History) Pools() []PoolHistory {
	var out []PoolHistory
	for key, line := range h.pools {
		last, ok := line.latest()
		if !ok {
			continue
		}
		one := PoolHistory{Namespace: key.namespace, Pool: key.name,
			Strategy: h.options.strategy(last.state, h.namespaceAt(key.namespace, last.last)).String()}
		d := demands{h: h, namespace: key.namespace, pool: key.name}
		for _, at := range d.changes(RV(endOfTime)) {
			if asked, ok := d.at(at.hi); ok {
				one.add(Band{From: at.seen, Until: h.until, Revision: asked.revision()})
			}
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b PoolHistory) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pool, b.Pool))
	})
	return out
}

// endOfTime is after every resourceVersion that etcd can give.
const endOfTime = "99999999999999999999"

// add begins a band where the content changes.
func (p *PoolHistory) add(b Band) {
	if n := len(p.Bands); n > 0 {
		last := &p.Bands[n-1]
		if last.Revision.Template == b.Revision.Template && last.Revision.Digest == b.Revision.Digest {
			return
		}
		last.Until = b.From
	}
	p.Bands = append(p.Bands, b)
}
