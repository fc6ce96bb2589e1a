package freshness

import (
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// Members say by another clock since when they are ready.
func TestAvailableByAnotherClock(t *testing.T) {
	type want struct {
		Available bool
		Wait      time.Duration
	}
	cases := map[string]struct {
		minReady, readyFor time.Duration
		want               want
	}{
		"long enough":                         {30 * time.Second, time.Minute, want{true, 0}},
		"in a moment":                         {30 * time.Second, 10 * time.Second, want{false, 20 * time.Second}},
		"ready is enough":                     {0, 0, want{true, 0}},
		"ready is enough, whatever the clock": {0, -time.Hour, want{true, 0}},
		"a clock that is ahead":               {30 * time.Second, -time.Hour, want{false, 30 * time.Second}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := PoolState{MinReady: tc.minReady, Now: noon}
			var got want
			got.Available, got.Wait = s.availableAt(ready(Current, tc.readyFor))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// A leader whose clock was ahead began the rollout.
func TestPlanWithClocksThatDiffer(t *testing.T) {
	const deadline, ahead = 10 * time.Minute, 3 * time.Hour
	future := Rollout{Revision: "r", Started: noon.Add(ahead), Progressed: noon.Add(ahead), Fresh: noon.Add(ahead), State: Progressing}
	plan := func(r Rollout, now time.Time, m ...MemberState) Plan {
		return MakePlan(PoolState{
			Strategy: RollingUpdate, Replicas: 2, MaxUnavailable: 1, Deadline: deadline, Members: m, Rollout: r, Now: now,
		})
	}
	at := func(r Rollout) []time.Time { return []time.Time{r.Started, r.Progressed, r.Fresh} }

	first := plan(future, noon, gated(unready(Stale, time.Hour)), gated(unready(Current, 0)))
	if diff := cmp.Diff([]time.Time{noon, noon, noon}, at(first.Rollout)); diff != "" {
		t.Errorf("started, progressed and fresh (-want,+got):\n%s", diff)
	}
	if first.Again > deadline {
		t.Errorf("the next look is in %s, and the deadline in %s", first.Again, deadline)
	}
	overdue := plan(first.Rollout, noon.Add(deadline), gated(unready(Stale, time.Hour)), gated(unready(Current, 0)))
	if overdue.Rollout.State != Failed {
		t.Errorf("after the deadline the rollout is %s, want %s", overdue.Rollout.State, Failed)
	}
	// What goes on is seen to go on, by whatever clock.
	awaiting := first.Rollout
	awaiting.Replacing = Replacements(nil).Delete(0, 0, 1, 0)
	goesOn := plan(awaiting, noon.Add(time.Minute), gated(unready(Stale, time.Hour)), ready(Current, -ahead))
	if got, want := goesOn.Rollout.Progressed, noon.Add(time.Minute); !got.Equal(want) {
		t.Errorf("progress at %s, want %s", got, want)
	}
	// What was before stays so.
	past := Rollout{Revision: "r", Started: before(3), Progressed: before(2), Fresh: before(1), State: Progressing}
	if diff := cmp.Diff(at(past), at(past.By(noon))); diff != "" {
		t.Errorf("started, progressed and fresh (-want,+got):\n%s", diff)
	}
}

// setBack is what the clock of a process shows after it was set back by that many
// seconds: more time has passed than before, and an earlier one is shown.
func setBack(t time.Time, seconds uint64) time.Time {
	// Nothing but a step of the machine's clock makes such a time. It has the seconds above
	// the 30 bits of nanoseconds.
	parts := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	parts.wall -= seconds << 30
	return t
}

// A deadline goes by how much time has passed; births go by what clocks show.
func TestNotAfterComparesWhatClocksShow(t *testing.T) {
	earlier := time.Now()
	now := setBack(earlier.Add(time.Minute), 3600)
	if passed := now.Sub(earlier); passed != time.Minute {
		t.Fatalf("%s have passed, want a minute", passed)
	}
	if got := notAfter(earlier, now); got != now {
		t.Errorf("notAfter() = %s, want %s", got, now)
	}
}
