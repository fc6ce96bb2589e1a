package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/scenario"
)

// shownStale is how many stale binds of a round are named.
const shownStale = 1

// ofRound keeps the binds of one side's claims of one round.
func ofRound(binds []checker.Bind, namespace, prefix string) []checker.Bind {
	var kept []checker.Bind
	for _, b := range binds {
		if b.Namespace == namespace && strings.HasPrefix(b.Claim.Name, prefix) {
			kept = append(kept, b)
		}
	}
	return kept
}

// stale keeps the stale binds.
func stale(binds []checker.Bind) []checker.Bind {
	var kept []checker.Bind
	for _, b := range binds {
		if b.Has(checker.Stale) {
			kept = append(kept, b)
		}
	}
	return kept
}

// roundLine says how a round went for one side. took is the time until all its
// claims were ready, 0 when they were not.
func roundLine(side string, binds []checker.Bind, took time.Duration, refused *scenario.Refused) string {
	warm := 0
	for _, b := range binds {
		if b.Warm {
			warm++
		}
	}
	bad := stale(binds)
	line := fmt.Sprintf("  %-9s  %2d stale  %2d warm, %2d cold", side, len(bad), warm, len(binds)-warm)
	if took > 0 {
		line += fmt.Sprintf(", all ready in %s", seconds(took))
	}
	for i, b := range bad {
		if i == shownStale {
			break
		}
		line += fmt.Sprintf("   %s -> %s: %s", b.Claim.Name, b.Sandbox.Name, b.Difference)
	}
	if refused != nil {
		line += fmt.Sprintf("   %d repaired; refused: %s, %s, %s", refused.Repaired, scenario.Plural(refused.Binds, "bind"),
			scenario.Plural(refused.ColdStarts, "cold start"), scenario.Plural(refused.Births, "new member"))
	}
	return line
}

// bindInFull tells all that the recording knows about one bind.
func bindInFull(b checker.Bind) []string {
	how := "cold"
	if b.Warm {
		how = "warm, out of pool " + b.Pool
	}
	lines := []string{
		fmt.Sprintf("  claim     %s/%s (uid %s)", b.Namespace, b.Claim.Name, b.Claim.UID),
		fmt.Sprintf("  sandbox   %s (uid %s), bound %s, at resourceVersion %s", b.Sandbox.Name, b.Sandbox.UID, how, b.RV),
		fmt.Sprintf("  found     %s", b.Found),
		fmt.Sprintf("  expected  %s, in force since resourceVersion %s; the bind was admitted after %s",
			b.Expected, b.StaleSince, b.AdmittedAfter),
		fmt.Sprintf("  differs   %s (found -> expected)", b.Difference),
	}
	if since := time.Duration(b.StaleFor); since > 0 {
		lines[3] += fmt.Sprintf(" and stored %s after the update", seconds(since))
	}
	return lines
}

// priceLine says what freshness cost.
func (o options) priceLine(unguarded, guarded row) string {
	price := guarded.p50() - unguarded.p50()
	line := fmt.Sprintf("price of freshness here: %+.2f s until a claim is ready (p50)", price.Seconds())
	if o.lag > 0 {
		line += fmt.Sprintf(", with %s seen %.1f s late; with another lag: %s=10 make demo", o.seenLate(), o.lag.Seconds(), envLag)
	}
	return line
}

// outcome is what the last line and the exit code follow from.
type outcome struct {
	unguarded, guarded row
	// claims is how many were made in each namespace.
	claims int
	// lost counts spans of lost events, unsettled the binds judged before all
	// events up to them had arrived.
	lost, unsettled int
}

// failures says why the run proves nothing, or the wrong thing; none is success.
func (o outcome) failures() []string {
	var lines []string
	add := func(failed bool, format string, args ...any) {
		if failed {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	g := o.guarded
	add(o.lost > 0, "the recording lost events %d times: what it shows proves nothing", o.lost)
	add(o.unsettled > 0, "%d binds were judged before all events had arrived", o.unsettled)
	add(g.stale() > 0, "%s in the guarded namespace", scenario.Plural(g.stale(), "stale bind"))
	add(!scenario.Sound(g.Summary), "in the guarded namespace: %s", scenario.Besides(g.Summary))
	add(g.Ready < g.Claims, "%d of %d claims in the guarded namespace did not become ready", g.Claims-g.Ready, g.Claims)
	add(g.Claims != o.claims || o.unguarded.Claims != o.claims,
		"%d claims were made in each namespace, %d unguarded and %d guarded ones recorded", o.claims, o.unguarded.Claims, g.Claims)
	add(g.ghosts != 0, "ghosts in the guarded namespace: %s", count(g.ghosts))
	add(o.unguarded.stale() == 0,
		"no stale bind in the unguarded namespace: this release, as late as it was here, did not need a guard (a later template watch, or another %s, does)", envUpstream)
	return lines
}

// lastLine is the run in one line, for scripts.
func (o outcome) lastLine() string {
	return fmt.Sprintf("demo: unguarded stale=%d guarded stale=%d claims=%d ready=%d",
		o.unguarded.stale(), o.guarded.stale(), o.guarded.Claims, o.guarded.Ready)
}
