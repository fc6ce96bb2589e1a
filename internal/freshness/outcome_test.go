package freshness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCounts(t *testing.T) {
	s := PoolState{
		Strategy: OnReplenish, Replicas: 12, MinReady: 10 * time.Second, Now: noon,
		Members: members(
			times(2, ready(Current, time.Minute)), times(1, ready(Current, time.Second)), times(1, unready(Current, time.Second)),
			times(3, failing(ready(Stale, time.Hour))), times(1, unready(Former, time.Hour)), times(2, ready(Unknown, time.Hour)),
			times(1, failing(ready(Current, time.Minute))), times(1, failing(unready(Unusable, time.Hour))), times(1, leaving(ready(Stale, time.Hour))),
		),
		Rollout: Begin("r", "python", time.Time{}, noon),
	}
	got := MakePlan(s).Counts
	got.Claimable = 0
	want := Counts{Replicas: 12, Ready: 9, Updated: 5, UpdatedReady: 3, Stale: 4, Unknown: 2, WriteFailed: 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts (-want,+got):\n%s", diff)
	}
}

// A rollout is stalled, and gives what it has of the budget to others, only once
// its time is over while something is being replaced.
func TestOutcome(t *testing.T) {
	const deadline = time.Minute
	type outcome struct {
		State   State
		Cause   Cause
		Stalled bool
		Again   time.Duration
	}
	rolling := func(change func(*PoolState)) PoolState {
		s := PoolState{
			Strategy: RollingUpdate, Replicas: 2, MaxUnavailable: 1, Granted: 1, Deletes: 100, Deadline: deadline, Now: noon, Hideable: true,
			Members: times(1, ready(Stale, time.Hour)), Rollout: Begin("r", "python", time.Time{}, before(deadline)),
		}
		s.Rollout.Replacing = Replacements{{Deleted: 1}}
		// Somebody was given a fresh one just now, so that nothing else is waited for.
		s.Rollout.Fresh = before(time.Hour)
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		change func(*PoolState)
		want   outcome
	}{
		"the time is over": {func(*PoolState) {}, outcome{Failed, ProgressDeadlineExceeded, true, 0}},
		"not quite":        {func(s *PoolState) { s.Rollout.Progressed = before(deadline - time.Second) }, outcome{Progressing, MembersUpdating, false, time.Second}},
		"nothing is deleted": {func(s *PoolState) { s.Rollout.Replacing = Replacements{{Ahead: 1}} },
			outcome{Failed, ProgressDeadlineExceeded, false, 0}},
		"begun since": {func(s *PoolState) { s.Rollout.Started, s.Rollout.Progressed = before(time.Second), before(time.Hour) },
			outcome{Progressing, MembersUpdating, false, deadline - time.Second}},
		"no deadline":      {func(s *PoolState) { s.Deadline = 0 }, outcome{Progressing, MembersUpdating, false, 0}},
		"paused, not late": {func(s *PoolState) { s.Paused, s.Rollout.Progressed = true, before(deadline-time.Second) }, outcome{Paused, RolloutPaused, false, time.Second}},
		"no progress for ten minutes": {func(s *PoolState) {
			s.Deadline, s.Rollout.Started, s.Rollout.Progressed = time.Hour, before(time.Hour), before(10*time.Minute)
		},
			outcome{Progressing, MembersUpdating, true, 50 * time.Minute}},
		"paused, while late": {func(s *PoolState) { s.Paused = true }, outcome{Paused, RolloutPaused, true, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			p := MakePlan(rolling(tc.change))
			got := outcome{p.Rollout.State, p.Cause, p.Stalled, p.Again}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
