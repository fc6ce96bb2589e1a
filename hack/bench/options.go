package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// The variables that choose and shape a benchmark.
const (
	envBench   = "BENCH"
	envMembers = "BENCH_MEMBERS"
	envPairs   = "BENCH_PAIRS"
	envPools   = "BENCH_POOLS"
	envLag     = "BENCH_LAG"
	envLate    = "BENCH_LATE"
)

// options are what the environment asks for.
type options struct {
	bench                 string
	members, pairs, pools int
	// lag is how late agent-sandbox sees what is late.
	lag  time.Duration
	late []schema.GroupResource
}

// parseOptions reads the environment. An error names the variable.
func parseOptions(getenv func(string) string) (options, error) {
	o := options{
		bench: getenv(envBench), pairs: 5, pools: 100,
		lag: 1500 * time.Millisecond, late: []schema.GroupResource{upstream.SandboxTemplates},
	}
	if _, ok := benchmarks[o.bench]; !ok && o.bench != everything {
		return options{}, fmt.Errorf("%s: %q is no benchmark: use one of %s, or %s for every one", envBench, o.bench,
			strings.Join(slices.Sorted(maps.Keys(benchmarks)), ", "), everything)
	}
	for _, count := range []struct {
		name string
		into *int
	}{{envMembers, &o.members}, {envPairs, &o.pairs}, {envPools, &o.pools}} {
		text := getenv(count.name)
		if text == "" {
			continue
		}
		var err error
		if *count.into, err = scenario.ParseCount(text); err != nil {
			return options{}, fmt.Errorf("%s: %w", count.name, err)
		}
	}
	var err error
	if text := getenv(envLag); text != "" {
		if o.lag, err = scenario.ParseLag(text); err != nil {
			return options{}, fmt.Errorf("%s: %w", envLag, err)
		}
	}
	if text := getenv(envLate); text != "" {
		if o.late, err = lateOf(text); err != nil {
			return options{}, fmt.Errorf("%s: %w", envLate, err)
		}
	}
	return o, nil
}

// complete fills in what the benchmark has most to say about.
func (o options) complete() options {
	if o.members > 0 {
		return o
	}
	o.members = 1000
	switch o.bench {
	case "memory", "pools":
		o.members = 10_000
	case "scheduler":
		o.members = 50_000
	}
	return o
}
