// Command bench measures what keeping pools current costs, on a real control
// plane and with Freshbind as a process of its own.
//
// Environment:
//
//	BENCH=rollout        one pool of stale members under Recreate, against a
//	                     bare loop of the same deletes
//	BENCH=pools          many pools of two members on one template, which
//	                     changes once, beside the real agent-sandbox
//	BENCH=scheduler      kube-scheduler with and without the extender
//	BENCH_MEMBERS=1000   members of the pool of BENCH=rollout, pods of BENCH=scheduler
//	BENCH_PAIRS=5        how often rollout and bare loop, or both schedulers, take turns
//	BENCH_POOLS=500      pools of BENCH=pools
//
// It exits with 0 only when the bounds held: for rollout at most 10 requests
// besides the deletes, and at most 1.3 times the time of the bare loop; for
// pools never more members in replacement than the budget.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/freshbind/freshbind/test/scenario"
)

// result is what a benchmark found.
type result interface {
	// faults says which bounds did not hold.
	faults() []string
	// line is the result in one line, for scripts.
	line() string
}

func main() { os.Exit(scenario.Main("bench", parseOptions, play)) }

func play(ctx context.Context, o options) (held bool, err error) {
	r, err := benchmarks[o.bench](ctx, o, os.Stdout)
	if err != nil {
		return false, err
	}
	return conclude(os.Stdout, r), nil
}

// benchmarks are what BENCH can name.
var benchmarks = map[string]func(context.Context, options, io.Writer) (result, error){
	"rollout":   benchRollout,
	"pools":     benchPools,
	"scheduler": benchScheduler,
}

// conclude prints what did not hold, and the result.
func conclude(out io.Writer, r result) (held bool) {
	faults := r.faults()
	for _, fault := range faults {
		_, _ = fmt.Fprintln(out, "not held:", fault)
	}
	_, _ = fmt.Fprintln(out, strings.TrimSpace(r.line()))
	return len(faults) == 0
}
