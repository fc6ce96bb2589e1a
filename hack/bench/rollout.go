package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	release = "v1.0.3"
	// maxOthers and maxRatio are what is promised. Four of the others read the mode:
	// each step asks for it right before it writes, so that audit brakes at once.
	maxOthers = 12
	maxRatio  = 1.3
	// settling is longer than the outcome of a rollout may wait to be written.
	settling = 6 * time.Second
	// guardWithin bounds the time until the API server asks Freshbind.
	guardWithin = 120 * time.Second
)

// world has no pool controller: it would fill the pool while Freshbind empties
// it, and under Recreate delete stale members itself. Members are written as it
// writes them, under its identity. Freshbind cannot tell the difference, and
// nobody else's deletes or births are in the count.
type world struct {
	*scenario.World
	log *auditLog
	// upstream and identity are the configurations of agent-sandbox's own identity
	// and of Freshbind's.
	upstream, identity *rest.Config
}

// newWorld has an audit log, in which requests are counted.
func newWorld(ctx context.Context, budget int) (*world, error) {
	return startWorld(ctx, budget, controlplane.Options{AuditLog: true, Log: os.Stderr})
}

func startWorld(ctx context.Context, budget int, cluster controlplane.Options) (*world, error) {
	started, err := scenario.StartWorld(ctx, scenario.WorldOptions{
		Release: release,
		Cluster: cluster,
		Guard:   fixture.Options{Args: guardArgs(budget)},
	})
	if err != nil {
		return nil, err
	}
	w := &world{World: started, log: &auditLog{path: started.Cluster.AuditLogPath(0)}}
	w.upstream, err = started.Cluster.User(upstream.User,
		"system:serviceaccounts", "system:serviceaccounts:"+upstream.Namespace, "system:authenticated")
	if err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	w.identity, err = started.Cluster.User(fixture.User,
		"system:serviceaccounts", "system:serviceaccounts:freshbind-system", "system:authenticated")
	if err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

// guardArgs have Freshbind log what the chart has it log: no line for each decision.
func guardArgs(budget int) []string {
	return []string{fmt.Sprintf("--replacement-budget=%d", budget), "--zap-log-level=info"}
}

// rollouts is the result of all pairs.
type rollouts struct {
	members  int
	pairs    []pair
	defaults asShipped
}

// pair is one rollout and one bare loop.
type pair struct {
	rollout, bare time.Duration
	deletes       int
	others        []request
}

func (p pair) ratio() float64 { return p.rollout.Seconds() / p.bare.Seconds() }

// worst is the pair with the most other requests.
func (r rollouts) worst() pair {
	return slices.MaxFunc(r.pairs, func(a, b pair) int { return len(a.others) - len(b.others) })
}

func (r rollouts) rows() []row {
	others := row{what: "requests besides the deletes of a rollout", aim: maxOthers, worst: true}
	ratio := row{what: "time of a rollout, against a bare loop of its deletes", unit: "x", aim: maxRatio}
	for _, p := range r.pairs {
		others.figures, ratio.figures = append(others.figures, float64(len(p.others))), append(ratio.figures, p.ratio())
	}
	rows := []row{others, ratio}
	if d := r.defaults; d.deletes > 0 {
		what := fmt.Sprintf("with the chart's defaults beside agent-sandbox, %d members: ", d.members)
		rows = append(rows,
			row{what: what + "replaced after", unit: "s", figures: []float64{d.took.Seconds()}},
			row{what: what + "deletes", figures: []float64{float64(d.deletes)}},
			row{what: what + "requests besides, the births' among them, for each delete", figures: []float64{float64(len(d.others)) / float64(d.deletes)}})
	}
	return rows
}

func (r rollouts) median() float64 { return r.rows()[1].figure() }

func (r rollouts) faults() []string {
	var lines []string
	for i, p := range r.pairs {
		if p.deletes != r.members {
			lines = append(lines, fmt.Sprintf("pair %d: %d deletes of %d members", i+1, p.deletes, r.members))
		}
		if len(p.others) > maxOthers {
			lines = append(lines, fmt.Sprintf("pair %d: %d other requests, more than %d: %s", i+1, len(p.others), maxOthers, kinds(p.others)))
		}
	}
	return append(lines, missed(r.rows()[1:2])...)
}

func (r rollouts) line() string {
	return fmt.Sprintf("bench rollout: members=%d deletes=%d other=%d ratio=%.2f", r.members, r.worst().deletes, len(r.worst().others), r.median())
}

// benchRollout measures what a rollout costs by itself, and as it comes.
func benchRollout(ctx context.Context, o options, out io.Writer) (result, error) {
	found, err := takeTurns(ctx, o, out)
	if err != nil {
		return nil, err
	}
	found.defaults, err = benchDefaults(ctx, o, out)
	return found, err
}

// takeTurns lets Freshbind and a bare loop take turns, each with a pool of its
// own, and each first as often as the other.
func takeTurns(ctx context.Context, o options, out io.Writer) (found rollouts, err error) {
	w, err := newWorld(ctx, 2*o.members)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	if err := w.Controllers.Stop(); err != nil {
		return found, fmt.Errorf("stop agent-sandbox: %w", err)
	}
	ctx, cancel := scenario.Supervise(ctx, w.Err)
	defer cancel()
	_, _ = fmt.Fprintf(out, "a pool of %d stale members under Recreate, against a bare loop of the same deletes, up to %d at once\n", o.members, parallel)
	found.members = o.members
	for i := range o.pairs {
		p, err := w.pair(ctx, i, o.members)
		if err != nil {
			return found, err
		}
		found.pairs = append(found.pairs, p)
		_, _ = fmt.Fprintf(out, "pair %d/%d  rollout %.2f s, bare loop %.2f s, ratio %.2f; deletes %d, others %d: %s\n", i+1, o.pairs,
			p.rollout.Seconds(), p.bare.Seconds(), p.ratio(), p.deletes, len(p.others), kinds(p.others))
	}
	return found, nil
}

// pair fills two pools, empties both, one by a rollout and one by a loop, and
// removes them.
func (w *world) pair(ctx context.Context, number, members int) (pair, error) {
	var p pair
	guarded, err := w.fill(ctx, fmt.Sprintf("rollout-%d", number+1), members, scenario.Enforce())
	if err != nil {
		return p, err
	}
	bare, err := w.fill(ctx, fmt.Sprintf("bare-%d", number+1), members, nil)
	if err != nil {
		return p, err
	}
	if err := guarded.waitComplete(ctx); err != nil {
		return p, err
	}
	turns := []func() error{
		func() (err error) { return w.rollOut(ctx, guarded, &p) },
		func() (err error) { p.bare, err = w.loop(ctx, bare); return err },
	}
	if number%2 == 1 {
		slices.Reverse(turns)
	}
	for _, turn := range turns {
		if err := turn(); err != nil {
			return p, err
		}
	}
	return p, errors.Join(guarded.remove(ctx), bare.remove(ctx))
}

// rollOut changes the template and waits until every member is gone.
func (w *world) rollOut(ctx context.Context, f *filled, p *pair) error {
	if err := w.log.skip(); err != nil {
		return err
	}
	if _, err := f.ns.SetImage(ctx, f.pool.Template, "sandbox:v2"); err != nil {
		return err
	}
	start := time.Now()
	if err := f.waitEmpty(ctx); err != nil {
		return err
	}
	// The outcome is part of the cost.
	if err := scenario.Pause(ctx, settling); err != nil {
		return err
	}
	requests, err := w.log.next()
	if err != nil {
		return err
	}
	removed, others := deletes(by(requests, agentPrefix))
	p.deletes, p.others = len(removed), unscheduled(others)
	p.rollout = last(removed).Sub(start)
	return nil
}

// loop is what nobody can do with less: the deletes, each with preconditions.
func (w *world) loop(ctx context.Context, f *filled) (time.Duration, error) {
	if err := w.log.skip(); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := f.deleteAll(ctx); err != nil {
		return 0, err
	}
	if err := scenario.Pause(ctx, settling); err != nil {
		return 0, err
	}
	requests, err := w.log.next()
	if err != nil {
		return 0, err
	}
	removed, _ := deletes(by(requests, bareAgent))
	if len(removed) != len(f.members) {
		return 0, fmt.Errorf("the bare loop deleted %d of %d members", len(removed), len(f.members))
	}
	return last(removed).Sub(start), nil
}
