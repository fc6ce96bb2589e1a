package chaos

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/freshbind/freshbind/test/warmpool"
)

// envChaos makes more of each fault when it is "long".
const envChaos = "FRESHBIND_CHAOS"

func isLong() bool { return os.Getenv(envChaos) == "long" }

// many is short or, in the long form, long.
func (*world) many(short, long int) int {
	if isLong() {
		return long
	}
	return short
}

// invariants are the columns of the table.
var invariants = []invariant{
	{"auditor", "the auditor (internal/checker) finds no bind that is stale, dead, doubled, used, foreign or killed"},
	{"ready", "every claim gets ready, and the pool is full of what its template says"},
	{"ghosts", "every member that is ready is given to a claim"},
	{"usage", fmt.Sprintf("each replica holds at most %d goroutines and %d MiB more than before", moreGoroutines, moreHeap>>20)},
}

type invariant struct{ name, means string }

// outcome is what a fault came to, by invariant: "" where nobody came to look.
type outcome map[string]string

func TestChaos(t *testing.T) { chaos(t, &warmpool.AgentSandbox{Release: release}, faults) }

// TestKruiseChaos makes the faults with OpenKruise Agents, played by its double.
func TestKruiseChaos(t *testing.T) { chaos(t, &warmpool.Kruise{}, alsoElsewhere(isLong())) }

// alsoElsewhere are the faults that are made with other platforms than agent-sandbox, too.
// In the long form only those are not that end before a platform is asked.
func alsoElsewhere(long bool) []fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return f.alike == unread || f.alike != "" && !long })
}

func chaos(t *testing.T, of platform, made []fault) {
	t.Helper()
	w := newWorld(t, of)
	outcomes := map[string]outcome{}
	for _, f := range made {
		outcomes[f.name] = outcome{}
	}
	t.Cleanup(func() { _, _ = fmt.Fprint(t.Output(), table(outcomes)) })
	// What a first load leaves behind is no fault's.
	warm := w.stage(t, "warm-up")
	warm.must(warm.load(t.Context(), 1))
	warm.must(warm.calm())
	for _, f := range made {
		if !t.Run(f.name, func(t *testing.T) { w.stage(t, f.name).suffer(f, outcomes[f.name]) }) && t.Context().Err() != nil {
			return
		}
	}
}

// suffer makes a fault, with load while it lasts, ends it and looks at what is left.
func (s *stage) suffer(f fault, came outcome) {
	var before [2]usage
	for i, r := range s.byRole() {
		var err error
		before[i], err = r.usage(s.t.Context())
		s.must(err)
	}
	shows, end := f.begin(s)
	ended := false
	defer func() {
		if !ended {
			end()
		}
	}()
	loaded := make(chan error, 1)
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	go func() { loaded <- s.load(ctx, s.w.many(2, 20)) }()
	s.eventually(f.name+" shows", shows)
	if !f.stops {
		s.must(<-loaded)
	}
	end()
	ended = true
	if f.stops {
		s.must(<-loaded)
	}
	s.look(f, before, came)
}

// look judges what the fault has left behind.
func (s *stage) look(f fault, before [2]usage, came outcome) {
	note := func(invariant string, fault string) {
		if came[invariant] = "yes"; fault != "" {
			came[invariant] = "NO"
			s.t.Errorf("%s: %s", invariant, fault)
		}
	}
	var stuck string
	if err := s.calm(); err != nil {
		stuck = err.Error()
	}
	note("ready", stuck)
	if stuck == "" {
		var ghosts string
		probe, err := s.Unserved(s.t.Context())
		if err != nil || len(probe.Ghosts) > 0 {
			ghosts = fmt.Sprintf("%v (%v)", probe, err)
		}
		note("ghosts", ghosts)
	}
	bad, sum, err := s.convictions()
	s.must(err)
	var convicted []string
	for _, b := range bad {
		convicted = append(convicted, b.String())
	}
	if seen := len(s.claims) - s.unrecorded; sum.Warm+sum.Cold < seen || s.w.platform.ClaimsAreObjects() && sum.Claims < seen {
		convicted = append(convicted, fmt.Sprintf("the auditor saw too little: %s", sum))
	}
	note("auditor", strings.Join(convicted, "\n"))
	if !f.restarts {
		note("usage", s.usageReturns(before))
	}
	s.t.Logf("%s: %d claims, %s", f.name, len(s.claims), sum)
}

// byRole are the replica that leads, and the other one.
func (s *stage) byRole() [2]*replica {
	leads := -1
	s.eventually("a replica leads", func(ctx context.Context) (string, bool) {
		leads = s.w.leader(ctx)
		return "none does", leads >= 0
	})
	return [2]*replica{s.w.replicas[leads], s.w.replicas[1-leads]}
}

// usageReturns waits until who leads, and who does not, holds as much as who did before,
// and otherwise says what it holds: who leads may have changed.
func (s *stage) usageReturns(before [2]usage) string {
	for i, r := range s.byRole() {
		role := [2]string{"leader", "follower"}[i]
		var last usage
		s.eventually(fmt.Sprintf("the %s holds what it held (%s)", role, before[i]), func(ctx context.Context) (string, bool) {
			var err error
			last, err = r.usage(ctx)
			return fmt.Sprintf("%s (%v)", last, err), err == nil && last.within(before[i])
		})
		s.t.Logf("%s: %s, before %s", role, last, before[i])
	}
	return ""
}

// table says which fault was made and which invariant was looked at.
func table(outcomes map[string]outcome) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "%-27s", "FAULT")
	for _, v := range invariants {
		_, _ = fmt.Fprintf(&b, "%-9s", strings.ToUpper(v.name))
	}
	_, _ = fmt.Fprintln(&b, "ALSO IN")
	for _, f := range faults {
		_, _ = fmt.Fprintf(&b, "%-27s", f.name)
		also := f.also
		if _, made := outcomes[f.name]; !made {
			also = "TestChaos: " + f.alike
		}
		for _, v := range invariants {
			cell := outcomes[f.name][v.name]
			if cell == "" {
				cell = "-"
			}
			_, _ = fmt.Fprintf(&b, "%-9s", cell)
		}
		_, _ = fmt.Fprintln(&b, also)
	}
	for _, v := range invariants {
		_, _ = fmt.Fprintf(&b, "%s: %s\n", v.name, v.means)
	}
	return b.String()
}
