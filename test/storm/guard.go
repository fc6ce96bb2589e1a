package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/freshbind/freshbind/test/exposition"
	"github.com/freshbind/freshbind/test/fixture"
)

// load is what Freshbind's metrics tell of its own work: all its live reads,
// whatever for (verdicts, stamps, what follows from a refusal), and all writes
// that it gave a verdict on (binds, cold starts, births). No metric says for
// which of them a read was made, so their ratio is that of all to all.
//
// Repaired are the writes that it rewrote instead of refusing them.
type load struct{ reads, judged, repaired float64 }

func (l load) plus(m load) load {
	return load{l.reads + m.reads, l.judged + m.judged, l.repaired + m.repaired}
}

func (l load) minus(m load) load {
	return load{l.reads - m.reads, l.judged - m.judged, l.repaired - m.repaired}
}

// readsPerWrite is 0 when nothing was judged.
func (l load) readsPerWrite() float64 {
	if l.judged == 0 {
		return 0
	}
	return l.reads / l.judged
}

// parseLoad reads metrics in Prometheus' text format.
func parseLoad(text string) (load, error) {
	metrics, err := exposition.Parse(text)
	if err != nil {
		return load{}, err
	}
	return load{
		reads:    metrics.Sum("freshbind_live_reads_total"),
		judged:   metrics.Sum("freshbind_bind_verdicts_total"),
		repaired: metrics.Sum("freshbind_repairs_total"),
	}, nil
}

// guard is Freshbind, whose process can be killed. The counters of a process
// die with it, so they are read just before.
type guard struct {
	*fixture.Freshbind

	mu   sync.Mutex
	down bool
	// total is what was counted since the storm began, seen what the running
	// process had counted when it was last asked.
	total, seen load
}

// Err tells how Freshbind ended, unless it was killed here.
func (g *guard) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return nil
	}
	return g.Freshbind.Err()
}

// begin starts counting at zero.
func (g *guard) begin(ctx context.Context) error {
	if err := g.count(ctx); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total = load{}
	return nil
}

// count adds what the running process has counted since it was last asked.
func (g *guard) count(ctx context.Context) error {
	text, err := g.Metrics(ctx)
	if err != nil {
		return fmt.Errorf("ask freshbind what it counted: %w", err)
	}
	l, err := parseLoad(text)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total, g.seen = g.total.plus(l.minus(g.seen)), l
	return nil
}

// load is what was counted.
func (g *guard) load() load {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total
}

func (g *guard) kill(ctx context.Context) error {
	if err := g.count(ctx); err != nil {
		return err
	}
	g.mu.Lock()
	g.down, g.seen = true, load{}
	g.mu.Unlock()
	return g.Kill()
}

func (g *guard) restart(ctx context.Context) error {
	if err := g.Start(ctx); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = false
	return nil
}
