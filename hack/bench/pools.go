package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/hack/demo/counts"
	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/recorder"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// perPool is how many members each of the many pools has.
	perPool = 2
	// budget is Freshbind's default (controllers/pools/budget.go).
	budget = 50
	// look is how often all pools are listed, which is dear.
	look = 2 * time.Second
	// rolling is how long all pools together may take.
	rolling = 15 * time.Minute
)

// replaced is the result of one edit of a template of many pools.
type replaced struct {
	pools, deletes int
	others         []request
	extremes       counts.Extremes
	took           time.Duration
	// spent is how long all members together were in replacement.
	spent time.Duration
	lost  int
	busy  busy
}

func (r replaced) faults() []string {
	var lines []string
	add := func(failed bool, format string, args ...any) {
		if failed {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	lines = append(lines, missed(r.rows())...)
	add(r.lost > 0, "the recording lost events %d times: what it shows proves nothing", r.lost)
	add(r.deletes != perPool*r.pools, "%d deletes of %d members", r.deletes, perPool*r.pools)
	return lines
}

func (r replaced) rows() []row {
	what := fmt.Sprintf("%d pools of %d: ", r.pools, perPool)
	rows := []row{
		{what: what + "in replacement at once", unit: "members", aim: budget, figures: []float64{float64(r.extremes.MostReplacing)}},
		{what: what + "replaced after", unit: "s", figures: []float64{r.took.Seconds()}},
	}
	return append(rows, r.busy.rows()...)
}

func (r replaced) line() string {
	return fmt.Sprintf("bench pools: pools=%d members=%d deletes=%d other=%d replacing=%d budget=%d seconds=%.1f",
		r.pools, perPool*r.pools, r.deletes, len(r.others), r.extremes.MostReplacing, budget, r.took.Seconds())
}

// many are the pools, their record, and what they are to have.
type many struct {
	ns             *scenario.Namespace
	count, perPool int
	log            *counts.Log
	rec            *recorder.Recorder
}

const manyTemplate = "python"

// benchPools measures what many pools, and large ones, cost.
func benchPools(ctx context.Context, o options, out io.Writer) (result, error) {
	found, err := replaceMany(ctx, o, out)
	if err != nil {
		return nil, err
	}
	found.busy, err = measureBusy(ctx, o, out)
	return found, err
}

// replaceMany edits the one template of many pools, which the real agent-sandbox
// fills.
func replaceMany(ctx context.Context, o options, out io.Writer) (r replaced, err error) {
	w, err := newWorld(ctx, budget)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	ctx, cancel := scenario.Supervise(ctx, w.Err)
	defer cancel()
	m, err := w.many(ctx, o.pools, perPool)
	if err != nil {
		return r, err
	}
	start := time.Now()
	if err := m.waitComplete(ctx, ""); err != nil {
		return r, err
	}
	_, _ = fmt.Fprintf(out, "%d pools of %d members on one template, filled by agent-sandbox %s in %.0f s; budget %d\n",
		o.pools, perPool, release, time.Since(start).Seconds(), budget)
	found, err := w.edit(ctx, m)
	if err != nil {
		return r, err
	}
	_, _ = fmt.Fprintf(out, "every member replaced in %.1f s after the edit; in replacement at once: at most %d, on average %.1f, each for %.1f s\n",
		found.took.Seconds(), found.extremes.MostReplacing, found.spent.Seconds()/found.took.Seconds(), found.spent.Seconds()/float64(found.deletes))
	_, _ = fmt.Fprintf(out, "requests of Freshbind: %d deletes, and %s\n", found.deletes, kinds(found.others))
	return found, nil
}

// many creates the pools and begins to record them. Their strategy is an
// annotation: under one of their own spec agent-sandbox would delete members
// itself, as many as it likes.
func (w *world) many(ctx context.Context, count, perPool int) (*many, error) {
	m := &many{count: count, perPool: perPool, log: &counts.Log{}}
	var err error
	if m.ns, err = scenario.CreateNamespace(ctx, w.Cluster.Config(), w.Version, "pools", scenario.Enforce()); err != nil {
		return nil, err
	}
	if err := m.ns.WaitGuarded(ctx, guardWithin); err != nil {
		return nil, err
	}
	if m.rec, err = recorder.New(ctx, w.Cluster.Config(), recorder.Options{Namespace: m.ns.Name, Sink: m.log}); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	// Why a recording ended is told to whoever waits for it.
	go func() { _ = m.rec.Run(ctx) }()
	if err := m.rec.WaitForSync(ctx); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if err := m.ns.Create(ctx, builders.MakeTemplate(m.ns.Name, manyTemplate).APIVersion(w.Version).Image("sandbox:v1").Obj()); err != nil {
		return nil, err
	}
	for i := range count {
		pool := builders.MakePool(m.ns.Name, fmt.Sprintf("p%d", i+1)).APIVersion(w.Version).Template(manyTemplate).Replicas(int64(perPool)).
			Strategy(scenario.OnReplenish).Annotation(settings.StrategyKey, string(freshness.Recreate))
		if err := m.ns.Create(ctx, pool.Obj()); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// waitComplete waits until every pool is full and says so of a revision other
// than was.
func (m *many) waitComplete(ctx context.Context, was string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, rolling, fmt.Errorf("not within %s", rolling))
	defer cancel()
	for {
		list, err := m.ns.Resource(upstream.SandboxWarmPools).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list pools: %w", err)
		}
		done := 0
		for i := range list.Items {
			if upToDate(&list.Items[i], m.perPool) && list.Items[i].GetAnnotations()[settings.RolloutRevisionKey] != was {
				done++
			}
		}
		if done == m.count {
			return nil
		}
		if err := scenario.Pause(ctx, look); err != nil {
			return fmt.Errorf("wait until all pools are complete, of which %d of %d are: %w", done, m.count, err)
		}
	}
}

// edit changes the template and waits until every pool has followed.
func (w *world) edit(ctx context.Context, m *many) (replaced, error) {
	first, err := m.ns.Resource(upstream.SandboxWarmPools).Get(ctx, "p1", metav1.GetOptions{})
	if err != nil {
		return replaced{}, fmt.Errorf("get pool p1: %w", err)
	}
	if err := w.log.skip(); err != nil {
		return replaced{}, err
	}
	const image = "sandbox:v2"
	version, err := m.ns.SetImage(ctx, manyTemplate, image)
	if err != nil {
		return replaced{}, err
	}
	edit := counts.Edit{RV: checker.RV(version), At: time.Now(), Image: image}
	if err := m.waitComplete(ctx, first.GetAnnotations()[settings.RolloutRevisionKey]); err != nil {
		return replaced{}, err
	}
	if err := m.rec.CatchUp(ctx); err != nil {
		return replaced{}, fmt.Errorf("record: %w", err)
	}
	requests, err := w.log.next()
	if err != nil {
		return replaced{}, err
	}
	instants := m.log.Since(edit)
	removed, others := deletes(by(requests, agentPrefix))
	return replaced{
		pools: m.count, deletes: len(removed), others: others, extremes: counts.ExtremesOf(instants),
		took: whole(instants, m.perPool*m.count).Sub(edit.At), spent: spent(instants), lost: len(m.rec.Report().EventGaps),
	}, nil
}

// spent adds up how long members were in replacement.
func spent(instants []counts.Instant) time.Duration {
	var sum time.Duration
	for i := range len(instants) - 1 {
		sum += time.Duration(instants[i].Replacing) * instants[i+1].At.Sub(instants[i].At)
	}
	return sum
}

// whole is from when on there always were so many claimable members.
func whole(instants []counts.Instant, members int) time.Time {
	at := instants[0].At
	for i, instant := range instants {
		if instant.Claimable < members && i+1 < len(instants) {
			at = instants[i+1].At
		}
	}
	return at
}
