package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/freshbind/freshbind/test/controlplane"
)

const (
	// serialBinds are tried one after the other in each round, by each side;
	// bindWriters try so many each, all at once.
	serialBinds, bindWriters, bindsOfEach = 200, 32, 20
	// maxBindMedian, maxBindTail and maxBindsSlower are what is aimed at, against a webhook
	// that reads one object.
	maxBindMedian, maxBindTail, maxBindsSlower = 1.10, 1.25, 1
)

// The sides of the comparison. Each has a namespace of its own, with the same objects.
const (
	sideBare    = "bare"
	sideNoOp    = "no-op"
	sideOneGet  = "one-get"
	sideGuarded = "guarded"
)

var sides = []string{sideBare, sideNoOp, sideOneGet, sideGuarded}

// bindCost is what binds cost each side, round by round.
type bindCost struct {
	// serial is how long each bind took, one after the other, rates how many were done
	// in a second by all writers.
	serial map[string][][]time.Duration
	rates  map[string][]float64
	// serialReads and sharedReads are Freshbind's own for one bind, one after the other,
	// and by all writers.
	serialReads, sharedReads []float64
	// cpu is the CPU time, in milliseconds, that each program took for one bind, one
	// after the other: by side and program.
	cpu map[string]map[string][]float64
}

// against returns a percentile of one side, as a multiple of another's, by round.
func against(of map[string][][]time.Duration, side, floor string, p int) []float64 {
	var out []float64
	for i, took := range of[side] {
		out = append(out, percentile(took, p).Seconds()/percentile(of[floor][i], p).Seconds())
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
	for _, side := range sides[1:] {
		rows = append(rows, row{what: "p50 against no webhook: " + side, unit: "x", figures: against(b.serial, side, sideBare, 50)})
	}
	for _, side := range sides {
		for _, program := range slices.Sorted(maps.Keys(b.cpu[side])) {
			rows = append(rows, row{what: fmt.Sprintf("CPU of %s for one bind: %s", program, side), unit: "ms", figures: b.cpu[side][program]})
		}
	}
	return append(rows,
		row{what: "Freshbind's reads for one bind, one after the other", figures: b.serialReads},
		row{what: fmt.Sprintf("Freshbind's reads for one bind, %d writers", bindWriters), figures: b.sharedReads})
}

func (b bindCost) faults() []string { return missed(b.rows()) }

func (b bindCost) line() string {
	text := []string{"bench bind:"}
	for _, side := range sides {
		text = append(text, fmt.Sprintf("%s p50=%s rate=%.0f/s", side, percentile(slices.Concat(b.serial[side]...), 50).Round(10*time.Microsecond), slices.Max(b.rates[side])))
	}
	return strings.Join(text, " ")
}

// benchBind has the sides bind in turns, in dry runs: with everything that a bind
// costs but the write to etcd, which is the same for all.
func benchBind(ctx context.Context, o options, out io.Writer) (r result, err error) {
	// An audit log would cost each read two lines that are written before it is answered.
	w, err := startWorld(ctx, 50, controlplane.Options{Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	if err := w.Controllers.Stop(); err != nil {
		return nil, err
	}
	binders, stop, err := w.binders(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	b := bindCost{serial: map[string][][]time.Duration{}, rates: map[string][]float64{}, cpu: map[string]map[string][]float64{}}
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
func (w *world) binders(ctx context.Context) (map[string]func(context.Context) (time.Duration, error), func(), error) {
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
	binders := map[string]func(context.Context) (time.Duration, error){}
	for _, side := range sides {
		c, err := w.populate(ctx, namespaceOf(side), 1, 1, true)
		if err == nil && side == sideGuarded {
			err = errors.Join(c.ns.WaitGuarded(ctx, guardWithin), c.waitComplete(ctx))
		}
		if err == nil {
			binders[side], err = w.binder(ctx, c)
		}
		if err == nil && floor.path(side) != "" {
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
func (w *world) bindSerially(ctx context.Context, side string, bind func(context.Context) (time.Duration, error), programs map[string]int, b *bindCost) error {
	before, err := cpuTimes(programs)
	if err != nil {
		return err
	}
	var serial []time.Duration
	for range serialBinds {
		took, err := bind(ctx)
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
func (w *world) bindSide(ctx context.Context, side string, bind func(context.Context) (time.Duration, error), programs map[string]int, b *bindCost) error {
	before, err := w.reads(ctx)
	if err != nil {
		return err
	}
	if err := w.bindSerially(ctx, side, bind, programs, b); err != nil {
		return err
	}
	between, err := w.reads(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	group, binding := errgroup.WithContext(ctx)
	for range bindWriters {
		group.Go(func() error {
			for range bindsOfEach {
				if _, err := bind(binding); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	b.rates[side] = append(b.rates[side], float64(bindWriters*bindsOfEach)/time.Since(start).Seconds())
	after, err := w.reads(ctx)
	if err == nil && side == sideGuarded {
		b.serialReads = append(b.serialReads, (between-before)/serialBinds)
		b.sharedReads = append(b.sharedReads, (after-between)/(bindWriters*bindsOfEach))
	}
	return err
}

var readsLine = regexp.MustCompile(`(?m)^freshbind_live_reads_total\{[^}]*\} (\S+)$`)

// reads counts Freshbind's live reads, by its own metric.
func (w *world) reads(ctx context.Context) (float64, error) {
	text, err := w.Guard.Metrics(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask freshbind what it read: %w", err)
	}
	return liveReads(text)
}

func liveReads(metrics string) (n float64, err error) {
	for _, line := range readsLine.FindAllStringSubmatch(metrics, -1) {
		value, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			return 0, fmt.Errorf("read metric %s: %w", line[0], err)
		}
		n += value
	}
	return n, nil
}
