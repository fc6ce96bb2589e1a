package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/warmpool"
)

const (
	// Patience with what has to happen; a machine may be busy.
	guardWithin  = 5 * time.Minute
	fullWithin   = 10 * time.Minute
	settleWithin = 10 * time.Minute
)

// inWorld makes storms in a world that lasts as long as they do. The logs are
// kept unless all was good.
func inWorld(ctx context.Context, of platform, out io.Writer, storms func(context.Context, *world) (good bool, err error)) (err error) {
	dir, err := os.MkdirTemp("", "freshbind-storm-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	good := false
	defer func() {
		if err != nil || !good {
			_, _ = fmt.Fprintf(out, "logs are kept in %s\n", dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	w, err := newWorld(ctx, of, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	ctx, cancel := scenario.Supervise(ctx, w.Err)
	defer cancel()
	good, err = storms(ctx, w)
	return err
}

// storm makes one storm and judges it. An error means that it could not be made
// or judged.
func (w *world) storm(ctx context.Context, o options, out io.Writer) (result, error) {
	steps, raids := plan(o.seed, o.claims), planRaids(o.seed, o.claims, w.attacks(o))
	_, _ = fmt.Fprintf(out, "storm with seed %d (again: %s=%d %s=%d %s=%s make storm): %d steps, %d raids\n",
		o.seed, envSeed, o.seed, envClaims, o.claims, envUpstream, o.upstream, len(steps), len(slices.Concat(raids[:]...)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newStage(ctx, w, o)
	if err != nil {
		return result{}, err
	}
	played := &runner{stage: s, out: out, start: time.Now()}
	r := result{seed: o.seed, claims: o.claims, settled: settled(steps)}
	for _, p := range s.pools {
		if _, err := p.Rest(ctx, "", fullWithin); err != nil {
			return result{}, err
		}
	}
	played.say("%d pools of %d are full", pools, o.size())
	if err := r.tolerate(played.play(ctx, steps, raids)); err != nil {
		return result{}, err
	}
	if err := played.settle(ctx, &r); err != nil {
		return result{}, err
	}
	return r, played.judge(ctx, o, &r)
}

// settle waits for the calm: nothing late any more, every claim ready, every
// pool full. What does not happen in time is a fault.
func (w *runner) settle(ctx context.Context, r *result) error {
	for view := range warmpool.Views {
		w.world.platform.Late(view, 0)
	}
	r.ready = r.claims
	for i, p := range w.pools {
		err := p.Served(ctx, settleWithin, w.kept[i]...)
		var unready *scenario.UnreadyError
		if errors.As(err, &unready) {
			r.ready -= len(unready.Claims)
		}
		if err := r.tolerate(err); err != nil {
			return err
		}
	}
	w.say("%d of %d claims are ready", r.ready, r.claims)
	return w.probe(ctx, r)
}

// probe waits until the pools are full, and finds the members that nobody is
// given.
func (w *runner) probe(ctx context.Context, r *result) error {
	for _, p := range w.pools {
		_, err := p.Rest(ctx, "", settleWithin)
		if err := r.tolerate(err); err != nil {
			return err
		}
	}
	w.say("pools are full again")
	for _, p := range w.pools {
		probe, err := p.Unserved(ctx)
		if err := r.tolerate(err); err != nil {
			return err
		}
		r.ghosts += len(probe.Ghosts)
		w.say("probe of %s: %d members, %d claims, %d cold, ghosts: %v", p.In(), probe.Members, probe.Claims, probe.Cold, probe.Ghosts)
	}
	return w.world.guard.count(ctx)
}

// tolerate notes what came too late, and returns every other error.
func (r *result) tolerate(err error) error {
	if err == nil || !scenario.TooLate(err) {
		return err
	}
	r.late = append(r.late, err)
	return nil
}

// judge takes from the recording and from the audit log what is this storm's.
func (w *runner) judge(ctx context.Context, o options, r *result) error {
	if err := w.recording.CatchUp(ctx); err != nil {
		return fmt.Errorf("judge: %w", err)
	}
	names, own := w.world.judged(o), w.world.namespaces(o)
	report := within(w.recording.Report(), names)
	log, err := os.Open(w.world.Cluster.AuditLogPath(0))
	if err != nil {
		return fmt.Errorf("open audit log: %w", err)
	}
	defer func() { _ = log.Close() }()
	trail, err := readTrail(log, names)
	if err != nil {
		return err
	}
	e := evidence{report: report, trail: trail, ends: w.ends, ids: w.world.ids, attacks: w.world.attacks(o), raids: w.hostile.raided}
	r.tally, r.load = e.judge(), w.world.guard.load()
	r.refused = trail.refused(func(q request) bool { return slices.Contains(own[:], q.namespace) })
	for _, summary := range report.Namespaces {
		w.say("%s; stale births %d", summary, summary.StaleBirths)
	}
	return nil
}

// within leaves in a report what happened in these namespaces.
func within(r *checker.Report, namespaces []string) *checker.Report {
	r.Namespaces = slices.DeleteFunc(slices.Clone(r.Namespaces), func(s checker.Summary) bool { return !slices.Contains(namespaces, s.Namespace) })
	r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(b checker.Bind) bool { return !slices.Contains(namespaces, b.Namespace) })
	return r
}
