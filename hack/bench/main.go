// Command bench measures what keeping pools current costs, on a real control
// plane and with Freshbind as a process of its own.
//
// Environment:
//
//	BENCH=rollout        one pool of stale members under Recreate, against a
//	                     bare loop of the same deletes
//	BENCH=pools          many pools of two members on one template, which
//	                     changes once, beside the real agent-sandbox; then what
//	                     large pools and many pools cost in CPU, and binds
//	                     elsewhere in time
//	BENCH=bind           a bind without webhook, with a policy of the API server, with
//	                     webhooks that read nothing, one object and six, and with Freshbind
//	BENCH=hostile        cold starts of one tenant while another one writes large
//	                     templates and sandboxes at full speed
//	BENCH=memory         heap and resident memory of each member and node
//	BENCH=ready          how soon claims right after an update are ready, on each
//	                     release: without Freshbind, with cold starts refused, with
//	                     cold starts repaired, and without an update before
//	BENCH=scheduler      the extender asked about members, and kube-scheduler
//	                     with and without it
//	BENCH=sustained      how many binds one replica answers for in a second, and what
//	                     1,000 take
//	BENCH=all            all of them
//	BENCH_MEMBERS        members: 1000, for BENCH=memory and BENCH=pools 10000, with
//	                     BENCH=scheduler 50000 in the namespace of who is asked about
//	BENCH_PAIRS=5        how often two things that are compared take turns
//	BENCH_LAG=1.5s       how late agent-sandbox sees, with BENCH=ready,
//	BENCH_LATE=sandboxtemplates  these resources, or "all"
//	BENCH_POOLS=100      pools of BENCH=pools beside agent-sandbox
//	FRESHBIND_UPDATE_DOCS=1  put the table into docs/benchmarks.md
//
// It prints a table of figures beside aims, and exits with 0 only when all were
// met.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/freshbind/freshbind/test/scenario"
)

// result is what a benchmark found.
type result interface {
	// rows are figures beside aims.
	rows() []row
	// faults says which aims were not met, and what speaks against the figures.
	faults() []string
	// line is the result in one line, for scripts.
	line() string
}

func main() { os.Exit(scenario.Main("bench", parseOptions, play)) }

func play(ctx context.Context, o options) (held bool, err error) {
	names := []string{o.bench}
	if o.bench == everything {
		names = slices.Sorted(maps.Keys(benchmarks))
	}
	held = true
	var rows []row
	for _, name := range names {
		one := o
		one.bench = name
		publish, err := newPublisher(ctx, name)
		if err != nil {
			return false, err
		}
		r, err := benchmarks[name](ctx, one.complete(), os.Stdout)
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		held = conclude(os.Stdout, r) && held
		rows = append(rows, r.rows()...)
		if err := publish(r.rows()); err != nil {
			return false, err
		}
	}
	if len(names) > 1 {
		printTable(os.Stdout, rows)
	}
	return held, nil
}

// everything is BENCH for all of them.
const everything = "all"

// benchmarks are what BENCH can name.
var benchmarks = map[string]func(context.Context, options, io.Writer) (result, error){
	"bind":      benchBind,
	"hostile":   benchHostile,
	"memory":    benchMemory,
	"pools":     benchPools,
	"ready":     benchReady,
	"rollout":   benchRollout,
	"scheduler": benchScheduler,
	"sustained": benchSustained,
}

// conclude prints figures, what did not hold, and the result.
func conclude(out io.Writer, r result) (held bool) {
	printTable(out, r.rows())
	faults := r.faults()
	for _, fault := range faults {
		_, _ = fmt.Fprintln(out, "not held:", fault)
	}
	_, _ = fmt.Fprintln(out, strings.TrimSpace(r.line()))
	return len(faults) == 0
}
