package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	size     = 10
	poolName = "python"
	// Patience with what has to happen; a lag comes on top of it.
	guardWithin  = 5 * time.Minute
	restWithin   = 5 * time.Minute
	claimsWithin = 5 * time.Minute
)

// run tests all combinations and returns the results of those that it came to.
func run(ctx context.Context, o options, out io.Writer) ([]result, error) {
	var results []result
	for _, version := range o.versions {
		some, err := runRelease(ctx, o, version, out)
		results = append(results, some...)
		if err != nil {
			return results, fmt.Errorf("agent-sandbox %s: %w", version, err)
		}
	}
	return results, nil
}

// runRelease tests one release, on a cluster of its own, with every lag.
func runRelease(ctx context.Context, o options, version string, out io.Writer) (results []result, err error) {
	dir, err := os.MkdirTemp("", "freshbind-upstreamtest-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	interrupted := ctx
	defer func() {
		if interrupted.Err() == nil && (err != nil || anyBad(results)) {
			_, _ = fmt.Fprintf(out, "logs of %s are kept in %s\n", version, dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	world, err := scenario.StartWorld(ctx, scenario.WorldOptions{
		Release: version, Cluster: controlplane.Options{Dir: dir, Log: os.Stderr},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, world.Stop()) }()
	ctx, cancel := scenario.Supervise(ctx, world.Err)
	defer cancel()
	recording, err := scenario.Record(ctx, world.Cluster.Config())
	if err != nil {
		return nil, err
	}
	for i, lag := range o.lags {
		world.Controllers.Proxy().SetDelay(upstream.SandboxTemplates.Group, upstream.SandboxTemplates.Resource, lag)
		t := &trial{
			world: world, recording: recording, name: fmt.Sprintf("guarded-%d", i), rounds: o.rounds,
			result: result{version: version, lag: lag},
		}
		if err := t.run(ctx, out); err != nil {
			return results, err
		}
		results = append(results, t.result)
	}
	return results, nil
}

func anyBad(results []result) bool {
	for _, r := range results {
		if !r.good() {
			return true
		}
	}
	return false
}

// trial is one combination under test.
type trial struct {
	world     *scenario.World
	recording *scenario.Recording
	name      string
	rounds    int
	ns        *scenario.Namespace
	pool      scenario.Pool
	result    result
}

func (t *trial) run(ctx context.Context, out io.Writer) error {
	start := time.Now()
	before, err := t.refused(ctx)
	if err != nil {
		return err
	}
	if err := t.play(ctx); err != nil {
		if context.Cause(ctx) != nil || !scenario.TooLate(err) {
			return err
		}
		t.result.late = append(t.result.late, err)
	}
	report, err := t.recording.Judge(ctx)
	if err != nil {
		return err
	}
	t.result.Summary, t.result.lost = report.Namespace(t.name), len(report.EventGaps)
	after, err := t.refused(ctx)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, t.result.progress(after.Minus(before), time.Since(start)))
	for _, b := range report.Findings {
		if b.Namespace == t.name {
			_, _ = fmt.Fprintln(out, "  "+b.String())
		}
	}
	return nil
}

func (t *trial) refused(ctx context.Context) (scenario.Refused, error) {
	text, err := t.world.Guard.Metrics(ctx)
	if err != nil {
		return scenario.Refused{}, fmt.Errorf("ask freshbind what it refused: %w", err)
	}
	return scenario.ParseRefused(text)
}

// play is the scenario: updates with claims right after, then the probe. It
// ends with the first thing that does not happen in time.
func (t *trial) play(ctx context.Context) error {
	var err error
	t.ns, err = scenario.CreateNamespace(ctx, t.world.Cluster.Config(), t.world.Version, t.name, scenario.Enforce())
	if err != nil {
		return err
	}
	if err := t.ns.WaitGuarded(ctx, guardWithin); err != nil {
		return err
	}
	t.pool = scenario.Pool{
		Name: poolName, Template: poolName, Image: image(0), Replicas: size, Strategy: scenario.Recreate,
	}
	if err := t.ns.CreatePool(ctx, t.pool); err != nil {
		return err
	}
	for number := range t.rounds {
		if err := t.round(ctx, number+1); err != nil {
			return err
		}
	}
	if _, err := t.ns.WaitPool(ctx, t.pool, image(t.rounds), restWithin+t.result.lag); err != nil {
		return err
	}
	probe, err := t.ns.Ghosts(ctx, t.pool, "probe-")
	t.result.made += probe.Claims
	t.result.ghosts = len(probe.Ghosts)
	return err
}

func (t *trial) round(ctx context.Context, number int) error {
	if _, err := t.ns.WaitPool(ctx, t.pool, image(number-1), restWithin+t.result.lag); err != nil {
		return err
	}
	if _, err := t.ns.SetImage(ctx, t.pool.Template, image(number)); err != nil {
		return err
	}
	names := scenario.Names(fmt.Sprintf("c%d-", number), size)
	t.result.made += len(names)
	if err := t.ns.CreateClaims(ctx, t.pool, names...); err != nil {
		return err
	}
	return t.ns.WaitClaims(ctx, claimsWithin+t.result.lag, names...)
}

func image(updates int) string { return fmt.Sprintf("sandbox:v%d", updates+1) }
