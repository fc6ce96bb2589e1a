package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/scenario"
)

// result is one release with one lag.
type result struct {
	version string
	lag     time.Duration
	// Summary is of all claims, those of the probe for ghosts included.
	checker.Summary
	// made is how many claims were created.
	made   int
	ghosts int
	lost   int
	// late says what did not happen in time; the probe may be missing then.
	late []error
}

// line is the result in one line, for scripts.
func (r result) line() string {
	return fmt.Sprintf("upstream: version=%s lag=%s stale=%d claims=%d ready=%d ghosts=%d",
		r.version, r.lag, r.Classes[checker.Stale], r.made, r.Ready, r.ghosts)
}

func (r result) good() bool { return len(r.faults()) == 0 }

// faults says in words what is wrong.
func (r result) faults() []string {
	var lines []string
	add := func(failed bool, format string, args ...any) {
		if failed {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	for _, err := range r.late {
		add(true, "%v", err)
	}
	add(r.lost > 0, "the recording lost events %d times: what it shows proves nothing", r.lost)
	add(r.Classes[checker.Stale] > 0, "%s", scenario.Plural(r.Classes[checker.Stale], "stale bind"))
	add(!scenario.Sound(r.Summary), "%s", scenario.Besides(r.Summary))
	add(r.made == 0, "no claim was made")
	add(r.Claims != r.made, "%d claims were made and %d recorded", r.made, r.Claims)
	add(r.Ready < r.made, "%d of %d claims did not become ready", r.made-r.Ready, r.made)
	add(r.ghosts > 0, "%s", scenario.Plural(r.ghosts, "ghost"))
	return lines
}

// progress is the result for people, when it is there.
func (r result) progress(refused scenario.Refused, took time.Duration) string {
	line := fmt.Sprintf("%s, templates %s late: %d claims, %d warm, %d cold, ready after %.2f s (p50); refused %s, %s, %s; %s; took %.0f s",
		r.version, r.lag, r.Claims, r.Warm, r.Cold, time.Duration(r.ReadyP50).Seconds(),
		scenario.Plural(refused.Binds, "bind"), scenario.Plural(refused.ColdStarts, "cold start"),
		scenario.Plural(refused.Births, "birth"), scenario.Plural(r.ghosts, "ghost"), took.Seconds())
	if text := scenario.Besides(r.Summary); text != "" {
		line += "\n  besides: " + text
	}
	for _, fault := range r.faults() {
		line += "\n  fault: " + strings.ReplaceAll(fault, "\n", "\n  ")
	}
	return line
}
