package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/freshbind/freshbind/test/scenario"
)

// asShipped is one rollout with the defaults of the chart, beside agent-sandbox
// as it runs.
type asShipped struct {
	members, deletes int
	others           []request
	took             time.Duration
}

// benchDefaults replaces a pool with everything on that the chart has on: births
// are judged, a leader is elected, Freshbind tests itself, and the budget is the
// chart's.
func benchDefaults(ctx context.Context, o options, out io.Writer) (found asShipped, err error) {
	w, err := newWorld(ctx, budget)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	if err := w.Guard.Stop(); err != nil {
		return found, fmt.Errorf("stop freshbind: %w", err)
	}
	w.Guard.SetArgs(append(leading(), "--self-test=true")...)
	if err := w.Guard.Start(ctx); err != nil {
		return found, err
	}
	ctx, cancel := scenario.Supervise(ctx, w.Err)
	defer cancel()
	m, err := w.many(ctx, 1, o.members)
	if err != nil {
		return found, err
	}
	if err := m.waitComplete(ctx, ""); err != nil {
		return found, err
	}
	r, err := w.edit(ctx, m)
	if err != nil {
		return found, err
	}
	found = asShipped{members: o.members, deletes: r.deletes, others: r.others, took: r.took}
	_, _ = fmt.Fprintf(out, "with the chart's defaults beside agent-sandbox %s: %d members replaced in %.1f s; deletes %d, others %d: %s\n", release,
		o.members, found.took.Seconds(), found.deletes, len(found.others), kinds(found.others))
	return found, nil
}
