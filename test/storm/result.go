package main

import (
	"fmt"
	"strings"
)

// minRefused is how many writes were refused or repaired at least, or there was no
// storm. It holds for all storms that are made together: several short ones are worth
// a long one, in which luck evens out.
const minRefused = 20

// result is one storm.
type result struct {
	seed uint64
	tally
	// claims are those that stay, ready those of them that became so.
	claims, ready int
	refused       int
	ghosts        int
	// settled is how many binds nothing could race with, by the plan.
	settled int
	load    load
	// late says what did not happen in time.
	late []error
}

func (r result) stuck() int { return r.claims - r.ready }

// line is the result in one line, for scripts.
func (r result) line() string {
	return fmt.Sprintf("storm: seed=%d claims=%d ready=%d refused=%d repaired=%.0f tolerated=%d raced=%d stale=%d duplicate=%d dead=%d "+
		"used=%d foreign=%d misowned=%d misled=%d killed=%d ghosts=%d stuck=%d reads/bind=%.1f",
		r.seed, r.claims, r.ready, r.refused, r.load.repaired, r.tolerated, r.raced, r.stale, r.duplicate, r.dead,
		r.used, r.foreign, r.misowned, r.misled, r.killed, r.ghosts, r.stuck(), r.load.readsPerWrite())
}

// raids is what became of the hostile tenant's attacks, a line each.
func (r result) raids() string {
	var text strings.Builder
	for _, a := range attacks {
		t, made := r.attacks[a]
		if !made {
			continue
		}
		_, _ = fmt.Fprintf(&text, "attack %-16s tried=%d refused=%d broken=%d\n", a, t.tried, t.refused, t.broken)
	}
	return text.String()
}

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
	for _, note := range r.notes {
		add(true, "%s", note)
	}
	for _, c := range []struct {
		what string
		n    int
	}{
		{"stale", r.stale}, {"duplicate", r.duplicate}, {"dead", r.dead}, {"used", r.used}, {"foreign", r.foreign},
		{"misowned", r.misowned}, {"misled", r.misled},
		{"killed", r.killed}, {"ghosts", r.ghosts}, {"stuck", r.stuck()}, {"not judged", r.unjudged},
	} {
		add(c.n > 0, "%s: %d", c.what, c.n)
	}
	add(r.lost > 0, "the recording lost events %d times: what it shows proves nothing", r.lost)
	return lines
}

// unproven says in words why the storms that were made together, though nothing
// is wrong in any of them, prove too little.
func unproven(storms ...result) []string {
	refused, unraced, settled := 0, 0, 0
	for _, r := range storms {
		refused, unraced, settled = refused+r.refused+int(r.load.repaired), unraced+r.binds-r.raced, settled+r.settled
	}
	var lines []string
	if refused < minRefused {
		lines = append(lines, fmt.Sprintf("only %d writes were refused or repaired: fewer than %d are no storm", refused, minRefused))
	}
	// How many race beyond that depends on how long a bind takes.
	if unraced < max(1, settled) {
		lines = append(lines, fmt.Sprintf("%d binds did not race, of %d or more that nothing could race with", unraced, max(1, settled)))
	}
	for _, a := range attacks {
		all, made := raidTally{}, false
		for _, r := range storms {
			if _, is := r.attacks[a]; is {
				made = true
			}
			all.tried, all.refused = all.tried+r.attacks[a].tried, all.refused+r.attacks[a].refused
		}
		if made && (all.tried == 0 || all.refused == 0 && a.denied()) {
			lines = append(lines, fmt.Sprintf("attack %s was tried %d times, and nothing was refused: it shows nothing", a, all.tried))
		}
	}
	return lines
}

// explain is faults for people, "" when there are none.
func explain(faults []string) string {
	var text strings.Builder
	for _, fault := range faults {
		_, _ = fmt.Fprintln(&text, "fault:", strings.ReplaceAll(fault, "\n", "\n  "))
	}
	return text.String()
}
