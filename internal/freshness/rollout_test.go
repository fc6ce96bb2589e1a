package freshness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRolloutIs(t *testing.T) {
	is := Begin("r", "python", before(time.Hour), noon)
	for name, tc := range map[string]struct {
		rollout            Rollout
		revision, template string
		restarted          time.Time
		want               bool
	}{
		"the same":                            {is, "r", "python", before(time.Hour), true},
		"the same time in another place":      {is, "r", "python", before(time.Hour).In(time.FixedZone("x", 3600)), true},
		"another revision":                    {is, "s", "python", before(time.Hour), false},
		"another template of the same":        {is, "r", "go", before(time.Hour), false},
		"restarted since":                     {is, "r", "python", before(time.Minute), false},
		"nobody knows the template any more":  {Begin("r", "", before(time.Hour), noon), "r", "python", before(time.Hour), true},
		"nor is it known, but restarted then": {Begin("r", "", before(time.Hour), noon), "r", "python", noon, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.rollout.Is(tc.revision, tc.template, tc.restarted); got != tc.want {
				t.Errorf("Is() = %t, want %t", got, tc.want)
			}
		})
	}
}

// Progress is what becomes ready while something is awaited. It never goes back.
func TestProgress(t *testing.T) {
	progressed := before(10 * time.Second)
	for name, tc := range map[string]struct {
		change func(*PoolState)
		want   time.Time
	}{
		"one that became ready":       {func(*PoolState) {}, before(5 * time.Second)},
		"one that was ready before":   {func(s *PoolState) { s.Members[0] = ready(Current, time.Minute) }, progressed},
		"one that leaves":             {func(s *PoolState) { s.Members[0].Leaving = true }, progressed},
		"one of another revision":     {func(s *PoolState) { s.Members[0].Class = Stale }, progressed},
		"nothing is awaited":          {func(s *PoolState) { s.Rollout.Replacing = nil }, progressed},
		"what is missing is awaited":  {func(s *PoolState) { s.Rollout.Replacing, s.Rollout.AwaitMissing = nil, true }, before(5 * time.Second)},
		"nothing is missing":          {func(s *PoolState) { s.Rollout.Replacing, s.Rollout.AwaitMissing, s.Replicas = nil, true, 2 }, progressed},
		"what was awaited is there":   {func(s *PoolState) { s.Rollout.AwaitMissing, s.Replicas = true, 2 }, before(5 * time.Second)},
		"after a pause":               {func(s *PoolState) { s.Rollout.State = Paused }, noon},
		"while paused":                {func(s *PoolState) { s.Rollout.State, s.Paused = Paused, true }, before(5 * time.Second)},
		"complete, and one is stale":  {func(s *PoolState) { s.Rollout.State = Complete }, noon},
		"complete, and none is stale": {func(s *PoolState) { s.Rollout.State, s.Members = Complete, s.Members[:1] }, before(5 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			s := PoolState{
				Strategy: RollingUpdate, Replicas: 3, MaxUnavailable: 1, Granted: 1, Deletes: 100, Deadline: time.Hour, Now: noon,
				Members: []MemberState{ready(Current, 5*time.Second), ready(Stale, time.Hour)},
				Rollout: Begin("r", "python", time.Time{}, before(time.Hour)),
			}
			s.Rollout.Progressed, s.Rollout.Replacing = progressed, Replacements{{Deleted: 1}}
			tc.change(&s)
			if diff := cmp.Diff(tc.want, MakePlan(s).Rollout.Progressed); diff != "" {
				t.Errorf("progressed (-want,+got):\n%s", diff)
			}
		})
	}
}

// Only a leader that takes over does not know what was missing before.
func TestWhatElseIsMissing(t *testing.T) {
	s := PoolState{
		Strategy: RollingUpdate, Replicas: 3, MaxUnavailable: 1, Granted: 1, Deletes: 100, Now: noon, Members: times(1, ready(Current, time.Hour)),
		Rollout: Begin("r", "python", time.Time{}, before(time.Hour)),
	}
	s.Rollout.Replacing = Replacements{{Deleted: 1}}
	if diff := cmp.Diff(Replacements{{Deleted: 1}}, MakePlan(s).Rollout.Replacing); diff != "" {
		t.Errorf("in replacement (-want,+got):\n%s", diff)
	}
	s.Rollout.Inherited = true
	if diff := cmp.Diff(Replacements{{Ahead: 1, Deleted: 1}}, MakePlan(s).Rollout.Replacing); diff != "" {
		t.Errorf("in replacement after another leader (-want,+got):\n%s", diff)
	}
}

// What is inherited stays so when the next rollout begins, and only then.
func TestWhatTheNextRolloutInherits(t *testing.T) {
	for _, inherited := range []bool{true, false} {
		was := Begin("r", "python", time.Time{}, before(time.Hour))
		was.Replacing, was.Inherited = Replacements{{Deleted: 1}}, inherited
		if got := was.Follow("s", "python", time.Time{}, noon).Inherited; got != inherited {
			t.Errorf("inherited is %t, want %t", got, inherited)
		}
	}
}

// A pool that replaces nothing is held up by its pause only where somebody's former
// members wait for the end of it.
func TestAPauseHoldsUpFormerMembers(t *testing.T) {
	former := ready(Former, time.Hour)
	for name, tc := range map[string]struct {
		paused  bool
		members []MemberState
		want    Cause
	}{
		"a former one":             {true, times(1, former), RolloutPaused},
		"no pause":                 {false, times(1, former), StaleByStrategy},
		"a stale one":              {true, times(1, ready(Stale, time.Hour)), StaleByStrategy},
		"a former one that leaves": {true, members(times(1, leaving(former)), times(1, ready(Stale, time.Hour))), StaleByStrategy},
	} {
		t.Run(name, func(t *testing.T) {
			got := MakePlan(PoolState{
				Strategy: OnReplenish, Replicas: 2, MaxUnavailable: 1, Now: noon, Paused: tc.paused, Members: tc.members,
				Rollout: Begin("r", "python", time.Time{}, noon),
			}).Cause
			if got != tc.want {
				t.Errorf("the cause is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNothingIsNotedOfNoMembers(t *testing.T) {
	is := Replacements{{Ahead: 1, Deleted: 1}}
	if diff := cmp.Diff(is, is.Postpone(-1)); diff != "" {
		t.Errorf("Postpone(-1) (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff(is, is.Delete(5, 0, 0, 0)); diff != "" {
		t.Errorf("Delete() of none (-want,+got):\n%s", diff)
	}
}

// A member that goes at once takes no step besides.
func TestAMemberIsDeletedOnce(t *testing.T) {
	member := ready(Stale, time.Hour)
	member.OnFormerScheduler = true
	got := MakePlan(PoolState{
		Strategy: Recreate, Replicas: 3, MaxUnavailable: 3, Granted: 100, Deletes: 100, Now: noon, Members: times(1, member),
		Rollout: Begin("r", "python", time.Time{}, before(time.Hour)),
	}).Delete
	if diff := cmp.Diff([]int{0}, got); diff != "" {
		t.Errorf("deleted (-want,+got):\n%s", diff)
	}
}

// Who is not ready and stays is awaited before the place of one that goes.
func TestWhoIsNotReadyIsAwaitedFirst(t *testing.T) {
	got := MakePlan(PoolState{
		Strategy: Recreate, Replicas: 2, MaxUnavailable: 1, Granted: 100, Deletes: 100, Now: noon,
		Members: []MemberState{unready(Stale, time.Hour), unready(Current, time.Hour)},
		Rollout: Begin("r", "python", time.Time{}, before(time.Hour)),
	}).Rollout.Replacing
	if diff := cmp.Diff(Replacements{{Ahead: 1, Deleted: 1}}, got); diff != "" {
		t.Errorf("in replacement (-want,+got):\n%s", diff)
	}
}

func TestThePolicyKnowsWhatFailed(t *testing.T) {
	for _, state := range States() {
		got := PoolState{Rollout: Rollout{State: state}}.ReplacementPolicy().Failed
		if want := state == Failed; got != want {
			t.Errorf("%s: failed is %t, want %t", state, got, want)
		}
	}
}

func TestRolloutsOfWhatNobodyEdited(t *testing.T) {
	created := func(at time.Time, generation int64) Source { return Source{Created: at, Generation: generation} }
	for name, tc := range map[string]struct {
		restarted time.Time
		sources   []Source
		want      time.Time
	}{
		"nobody edited anything":      {sources: []Source{created(before(2*time.Hour), 1), created(before(time.Hour), 1)}, want: before(time.Hour)},
		"in another order":            {sources: []Source{created(before(time.Hour), 1), created(before(2*time.Hour), 1)}, want: before(time.Hour)},
		"one was edited":              {sources: []Source{created(before(2*time.Hour), 1), created(before(time.Hour), 2)}, want: noon},
		"a restart":                   {restarted: before(time.Minute), sources: []Source{created(before(time.Hour), 1)}, want: noon},
		"by a clock that is ahead":    {sources: []Source{created(noon.Add(time.Second), 1)}, want: noon},
		"of something without number": {sources: []Source{created(before(time.Hour), 0)}, want: noon},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Begin("r", "python", tc.restarted, noon).From(tc.sources...).Started; !got.Equal(tc.want) {
				t.Errorf("it began at %s, want %s", got, tc.want)
			}
		})
	}
}
