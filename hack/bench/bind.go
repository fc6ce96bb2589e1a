package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/exposition"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// serialBinds are tried one after the other in each round, by each side;
	// bindWriters try so many each, all at once, each with a member of its own.
	serialBinds, bindWriters, bindsOfEach = 200, 32, 20
	// maxBindMedian, maxBindTail and maxBindsSlower are what is aimed at, against a webhook
	// that reads one object.
	maxBindMedian, maxBindTail, maxBindsSlower = 1.10, 1.25, 1
	// maxShared are the reads for one bind, by all writers, of each object that their binds
	// have in common.
	maxShared = 0.2
)

// shared are what binds of one pool have in common.
var shared = []string{upstream.SandboxTemplates.Resource, upstream.SandboxWarmPools.Resource, nodeResource.Resource}

// The sides of the comparison. Each has a namespace of its own, with the same objects.
const (
	sideBare    = "bare"
	sidePolicy  = "policy"
	sideNoOp    = "no-op"
	sideOneGet  = "one-get"
	sideSixGets = "six-gets"
	sideGuarded = "guarded"
)

var sides = []string{sideBare, sidePolicy, sideNoOp, sideOneGet, sideSixGets, sideGuarded}

// bindCost is what binds cost each side, round by round.
type bindCost struct {
	// serial is how long each bind took, one after the other, rates how many were done
	// in a second by all writers.
	serial map[string][][]time.Duration
	rates  map[string][]float64
	// serialReads and writersReads are Freshbind's own for one bind, one after the other,
	// and by all writers; sharedReads are the latter of each object that they share.
	serialReads, writersReads []float64
	sharedReads               map[string][]float64
	// cpu is the CPU time, in milliseconds, that each program took for one bind, one
	// after the other: by side and program.
	cpu map[string]map[string][]float64
}

// against returns a percentile of one side, as a multiple of another's, by round.
func against(of map[string][][]time.Duration, side, floor string, p int) []float64 {
	var out []float64
	for i, took := range of[side] {
		out = append(out, checker.Percentile(took, p).Seconds()/checker.Percentile(of[floor][i], p).Seconds())
	}
	return out
}

func (b bindCost) slower(side, floor string) []float64 {
	var out []float64
	for i, rate := range b.rates[side] {
		out = append(out, b.rates[floor][i]/rate)
	}
	return out
}

func (b bindCost) rows() []row {
	rows := []row{
		{what: "bind, one after the other: p50, Freshbind against a webhook that reads one object", unit: "x", aim: maxBindMedian, figures: against(b.serial, sideGuarded, sideOneGet, 50)},
		{what: "the same, p99", unit: "x", aim: maxBindTail, figures: against(b.serial, sideGuarded, sideOneGet, 99)},
		{what: fmt.Sprintf("time for as many binds by %d writers, against the same webhook", bindWriters), unit: "x", aim: maxBindsSlower, figures: b.slower(sideGuarded, sideOneGet)},
	}
	rows = append(rows, row{what: "p50, Freshbind against a webhook that reads the same six objects", unit: "x", figures: against(b.serial, sideGuarded, sideSixGets, 50)})
	for _, side := range sides[1:] {
		rows = append(rows, row{what: "p50 against no webhook: " + side, unit: "x", figures: against(b.serial, side, sideBare, 50)})
	}
	for _, side := range sides {
		for _, program := range slices.Sorted(maps.Keys(b.cpu[side])) {
			rows = append(rows, row{what: fmt.Sprintf("CPU of %s for one bind: %s", program, side), unit: "ms", figures: b.cpu[side][program]})
		}
	}
	byWriters := fmt.Sprintf("Freshbind's reads for one bind, %d writers", bindWriters)
	rows = append(rows,
		row{what: "Freshbind's reads for one bind, one after the other", figures: b.serialReads},
		row{what: byWriters, figures: b.writersReads})
	for _, resource := range shared {
		rows = append(rows, row{what: byWriters + ": " + resource, aim: maxShared, figures: b.sharedReads[resource]})
	}
	return rows
}

func (b bindCost) faults() []string { return missed(b.rows()) }

func (b bindCost) line() string {
	text := []string{"bench bind:"}
	for _, side := range sides {
		text = append(text, fmt.Sprintf("%s p50=%s rate=%.0f/s", side, checker.Percentile(slices.Concat(b.serial[side]...), 50).Round(10*time.Microsecond), slices.Max(b.rates[side])))
	}
	return strings.Join(text, " ")
}

// startStill starts a world in which only a benchmark writes: nobody runs agent-sandbox.
func startStill(ctx context.Context) (*world, error) {
	// An audit log would cost each read two lines that are written before it is answered.
	w, err := startWorld(ctx, 50, controlplane.Options{Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	if err := w.Controllers.Stop(); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

// benchBind has the sides bind in turns, in dry runs: with everything that a bind
// costs but the write to etcd, which is the same for all.
func benchBind(ctx context.Context, o options, out io.Writer) (r result, err error) {
	w, err := startStill(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	binders, stop, err := w.binders(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	b := bindCost{
		serial: map[string][][]time.Duration{}, rates: map[string][]float64{}, cpu: map[string]map[string][]float64{}, sharedReads: map[string][]float64{},
	}
	programs, err := w.programs()
	if err != nil {
		return nil, err
	}
	for i := range o.pairs {
		for _, side := range sides {
			if err := w.bindSide(ctx, side, binders[side], programs, &b); err != nil {
				return nil, fmt.Errorf("%s: %w", side, err)
			}
		}
		_, _ = fmt.Fprintf(out, "round %d/%d: %s\n", i+1, o.pairs, b.line())
	}
	return b, nil
}

// binders make the sides: objects, and webhooks that are in force.
func (w *world) binders(ctx context.Context) (map[string]*binder, func(), error) {
	var left []string
	for _, side := range sides {
		if side != sideGuarded {
			left = append(left, namespaceOf(side))
		}
	}
	if err := w.Guard.Install(ctx, left...); err != nil {
		return nil, nil, err
	}
	floor, err := serveFloor(ctx, w.Cluster.Config())
	if err != nil {
		return nil, nil, err
	}
	binders := map[string]*binder{}
	for _, side := range sides {
		c, err := w.populate(ctx, namespaceOf(side), 1, bindWriters, true)
		if err == nil && side == sideGuarded {
			err = errors.Join(c.ns.WaitGuarded(ctx, guardWithin), c.waitComplete(ctx))
		}
		if err == nil {
			binders[side], err = w.binder(ctx, c)
		}
		switch {
		case err != nil:
		case side == sidePolicy:
			err = installPolicy(ctx, floor.kube, namespaceOf(side), binders[side])
		case floor.path(side) != "":
			err = floor.install(ctx, side, binders[side])
		}
		if err != nil {
			floor.stop()
			return nil, nil, fmt.Errorf("%s: %w", side, err)
		}
	}
	return binders, floor.stop, nil
}

func namespaceOf(side string) string { return "bind-" + side }

// programs are those that a bind keeps busy, by name; none where CPU time cannot be
// read.
func (w *world) programs() (map[string]int, error) {
	if runtime.GOOS != "linux" {
		return nil, nil
	}
	pids := map[string]int{"freshbind": w.Guard.PID()}
	for name, process := range map[string]string{"etcd": controlplane.Etcd, "kube-apiserver": controlplane.KubeAPIServer + "-0"} {
		pid, runs := w.Cluster.PID(process)
		if !runs {
			return nil, fmt.Errorf("the cluster has no process %s", process)
		}
		pids[name] = pid
	}
	return pids, nil
}

// bindSerially has one side bind, one after the other.
func (w *world) bindSerially(ctx context.Context, side string, by *binder, programs map[string]int, b *bindCost) error {
	before, err := cpuTimes(programs)
	if err != nil {
		return err
	}
	var serial []time.Duration
	for range serialBinds {
		took, err := by.bind(ctx, 0)
		if err != nil {
			return err
		}
		serial = append(serial, took)
	}
	b.serial[side] = append(b.serial[side], serial)
	after, err := cpuTimes(programs)
	if err != nil {
		return err
	}
	if b.cpu[side] == nil {
		b.cpu[side] = map[string][]float64{}
	}
	for name := range programs {
		spent := (after[name] - before[name]).Seconds() * 1000 / serialBinds
		b.cpu[side][name] = append(b.cpu[side][name], spent)
	}
	return nil
}

// bindSide has one side bind, one after the other and all at once.
func (w *world) bindSide(ctx context.Context, side string, by *binder, programs map[string]int, b *bindCost) error {
	before, err := readsOf(ctx, w.Guard)
	if err != nil {
		return err
	}
	if err := w.bindSerially(ctx, side, by, programs, b); err != nil {
		return err
	}
	between, err := readsOf(ctx, w.Guard)
	if err != nil {
		return err
	}
	start := time.Now()
	group, binding := errgroup.WithContext(ctx)
	for writer := range bindWriters {
		group.Go(func() error {
			for range bindsOfEach {
				if _, err := by.bind(binding, writer); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	const binds = bindWriters * bindsOfEach
	b.rates[side] = append(b.rates[side], binds/time.Since(start).Seconds())
	after, err := readsOf(ctx, w.Guard)
	if err != nil || side != sideGuarded {
		return err
	}
	b.serialReads = append(b.serialReads, (between.all()-before.all())/serialBinds)
	b.writersReads = append(b.writersReads, (after.all()-between.all())/binds)
	for _, resource := range shared {
		b.sharedReads[resource] = append(b.sharedReads[resource], (after[resource]-between[resource])/binds)
	}
	return nil
}

// reads are live reads by resource.
type reads map[string]float64

func (r reads) all() (n float64) {
	for _, of := range r {
		n += of
	}
	return n
}

// readsOf counts Freshbind's live reads, by its own metric.
func readsOf(ctx context.Context, guard *fixture.Freshbind) (reads, error) {
	text, err := guard.Metrics(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask freshbind what it read: %w", err)
	}
	return liveReads(text)
}

func liveReads(text string) (reads, error) {
	metrics, err := exposition.Parse(text)
	if err != nil {
		return nil, err
	}
	found := reads{}
	for _, s := range metrics["freshbind_live_reads_total"] {
		found[s.Labels["resource"]] += s.Value
	}
	return found, nil
}
