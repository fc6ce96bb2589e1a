package freshness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// before is a time that long before noon.
func before(d time.Duration) time.Time { return noon.Add(-d) }

func ready(c Class, age time.Duration) MemberState {
	return MemberState{Class: c, Created: before(age), ReadySince: before(age), Shown: true, ByPool: true}
}

func unready(c Class, age time.Duration) MemberState {
	return MemberState{Class: c, Created: before(age), Shown: true}
}

func hidden(m MemberState) MemberState { m.Shown = false; return m }

func leaving(m MemberState) MemberState { m.Leaving = true; return m }

func edited(m MemberState) MemberState { m.Edited = true; return m }

func byHand(m MemberState) MemberState { m.ByPool = false; return m }

func failing(m MemberState) MemberState { m.WriteFailed, m.BackedOff = true, true; return m }

func gated(m MemberState) MemberState { m.Gated = true; return m }

// times repeats a member.
func times(n int, m MemberState) []MemberState {
	out := make([]MemberState, n)
	for i := range out {
		out[i] = m
	}
	return out
}

func members(groups ...[]MemberState) []MemberState {
	var out []MemberState
	for _, g := range groups {
		out = append(out, g...)
	}
	return out
}

func TestMakePlan(t *testing.T) {
	const hour = time.Hour
	current, stale, unknown := ready(Current, hour), ready(Stale, hour), ready(Unknown, hour)
	started := Rollout{Revision: "r", Started: before(10 * time.Second), Progressed: before(10 * time.Second), Fresh: before(10 * time.Second), State: Progressing}
	overdue := Rollout{Revision: "r", Started: before(hour), Progressed: before(hour), Fresh: before(hour), State: Progressing}

	type want struct {
		Delete, Hide, Show []int
		Admit              Admit
		State              State
		Cause              Cause
		Claimable          int
		Again              time.Duration
	}
	type change func(*PoolState)
	of := func(strategy Strategy, replicas int, m []MemberState, changes ...change) PoolState {
		s := PoolState{
			Strategy: strategy, Replicas: replicas, MaxUnavailable: 1, Deadline: 10 * time.Minute,
			Hideable: true, Members: m, Rollout: started, Now: noon, Granted: 100, Deletes: 100,
		}
		for _, c := range changes {
			c(&s)
		}
		s.Rollout.Replacing = s.Rollout.Replacing.Await(s.Missing())
		return s
	}
	replacing := func(n int) change {
		return func(s *PoolState) { s.Rollout.Replacing = Replacements(nil).Delete(0, 0, n, 0) }
	}
	paused := func(s *PoolState) { s.Paused = true }
	notHideable := func(s *PoolState) { s.Hideable = false }
	suspended := func(s *PoolState) { s.Suspended = true }
	withheld := func(s *PoolState) { s.Withholds = true }
	late := func(s *PoolState) { s.Rollout = overdue }
	unavailable := func(n int) change { return func(s *PoolState) { s.MaxUnavailable = n } }
	first := func(s *PoolState) { s.HiddenFirst = 2 * time.Second }
	hiddenFor := func(m MemberState, d time.Duration) MemberState {
		m.Shown, m.HiddenSince = false, before(d)
		return m
	}
	left := 10*time.Minute - 10*time.Second

	cases := map[string]struct {
		pool PoolState
		want want
	}{
		"recreate: unknown ones born of this revision wait for one that is current": {
			of(Recreate, 3, []MemberState{unready(Unknown, time.Second), unready(Unknown, time.Second), unknown}),
			want{Delete: []int{2}, Hide: []int{0, 1}, State: Progressing, Cause: MembersUpdating, Again: left},
		},
		"recreate: unknown ones go once one of this revision is current": {
			of(Recreate, 3, []MemberState{unready(Unknown, time.Second), unready(Current, time.Second)}),
			want{Delete: []int{0}, State: Progressing, Cause: MembersUpdating, Again: left},
		},
		"recreate: an older one that is current again proves nothing": {
			of(Recreate, 3, []MemberState{unready(Unknown, time.Second), current}),
			want{Hide: []int{0}, State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: left},
		},
		"recreate: no more than may be deleted now, and the others are hidden": {
			of(Recreate, 3, times(3, stale), func(s *PoolState) { s.Deletes = 1 }),
			want{Delete: []int{0}, Hide: []int{1, 2}, State: Progressing, Cause: MembersUpdating, Again: left},
		},
		"recreate: an edited one goes": {
			of(Recreate, 2, []MemberState{edited(ready(Unknown, time.Second)), current}),
			want{Delete: []int{0}, State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: left},
		},
		"none of the revision is ready, and no older one serves: what is shown stays": {
			of(RollingUpdate, 3, []MemberState{unready(Current, hour), ready(Former, hour), gated(unready(Stale, hour))}, late, paused),
			want{Hide: []int{1}, Admit: AdmitAny, State: Paused, Cause: RolloutPaused},
		},
		"none of the revision is ready, and no older one serves: what is hidden stays": {
			of(RollingUpdate, 2, []MemberState{hidden(unready(Current, hour)), gated(unready(Stale, hour))}, late, paused),
			want{Admit: AdmitAny, State: Paused, Cause: RolloutPaused},
		},
		"one that leaves is not taken for a fresh one": {
			of(RollingUpdate, 2, []MemberState{leaving(ready(Current, hour)), gated(unready(Stale, hour))}, late, paused),
			want{Admit: AdmitAny, State: Paused, Cause: RolloutPaused},
		},
		"former ones are never served": {
			of(RollingUpdate, 2, []MemberState{ready(Former, hour), unready(Current, hour)}, late, paused),
			want{Hide: []int{0}, Admit: AdmitFresh, State: Paused, Cause: RolloutPaused},
		},
		"nothing to compare with: it is served": {
			of(Recreate, 1, times(1, ready(Unclassified, hour))),
			want{State: Complete, Cause: MembersUpToDate, Claimable: 1},
		},
		"one that leaves cannot be claimed": {
			of(OnReplenish, 1, []MemberState{leaving(current), current}),
			want{State: Complete, Cause: MembersUpToDate, Claimable: 1},
		},
		"an unusable one that leaves is not deleted again": {
			of(OnReplenish, 0, times(1, leaving(hidden(unready(Unusable, hour))))),
			want{State: Complete, Cause: MembersUpToDate},
		},
		"unknown ones that wait are not complete": {
			of(Recreate, 1, times(1, ready(Unknown, time.Second))),
			want{Hide: []int{0}, State: Progressing, Cause: MembersUpdating, Again: left},
		},
		"unknown ones do not end what was complete": {
			of(Recreate, 1, times(1, ready(Unknown, time.Second)), func(s *PoolState) { s.Rollout.State = Complete }),
			want{Hide: []int{0}, State: Complete, Cause: MembersUpToDate},
		},
		"suspended, and none is unknown": {
			of(Recreate, 1, times(1, current), suspended),
			want{State: Complete, Cause: MembersUpToDate, Claimable: 1},
		},
		"on replenish: none is stale, one is awaited": {
			of(OnReplenish, 2, times(1, current)),
			want{State: Progressing, Cause: MembersUpdating, Claimable: 1},
		},
		"all current": {of(Recreate, 2, times(2, current)), want{State: Complete, Cause: MembersUpToDate, Claimable: 2}},
		"recreate: all that are not current, the oldest first": {
			of(Recreate, 3, []MemberState{ready(Stale, hour), current, ready(Unknown, 2*hour)}),
			want{Delete: []int{2, 0}, State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: left},
		},
		"recreate: not what is leaving": {
			of(Recreate, 2, []MemberState{leaving(stale), current}),
			want{State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: left},
		},
		"recreate, paused: hidden, not deleted": {
			of(Recreate, 2, []MemberState{stale, current}, paused),
			want{Hide: []int{0}, State: Paused, Cause: RolloutPaused, Claimable: 1},
		},
		"recreate, overdue: goes on, for none of the old may be claimed": {
			of(Recreate, 2, []MemberState{stale, unready(Current, hour)}, late),
			want{Delete: []int{0}, State: Failed, Cause: ProgressDeadlineExceeded},
		},
		"recreate, attribution suspended: only what is known to be stale": {
			of(Recreate, 2, []MemberState{stale, unknown}, suspended),
			want{Delete: []int{0}, State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: left},
		},
		"attribution suspended: unknown ones do": {
			of(Recreate, 2, times(2, unknown), suspended),
			want{State: Complete, Cause: AttributionSuspended, Claimable: 2},
		},
		"unusable ones go under every strategy": {
			of(OnReplenish, 2, []MemberState{ready(Unusable, hour), stale}),
			want{Delete: []int{0}, State: Progressing, Cause: StaleByStrategy, Claimable: 1},
		},
		"unusable ones go from a paused pool": {
			of(Recreate, 1, []MemberState{ready(Unusable, hour)}, paused),
			want{Delete: []int{0}, State: Paused, Cause: RolloutPaused},
		},
		"on replenish: stale ones are served": {
			of(OnReplenish, 2, []MemberState{hidden(stale), current}),
			want{Show: []int{0}, State: Progressing, Cause: StaleByStrategy, Claimable: 2},
		},
		"a rollback shows what is current again": {
			of(Recreate, 2, []MemberState{hidden(current), current}),
			want{Show: []int{0}, State: Complete, Cause: MembersUpToDate, Claimable: 2},
		},
		"rolling: one step, nothing fresh for long": {
			of(RollingUpdate, 4, times(4, stale)),
			want{Delete: []int{0}, Admit: AdmitAny, State: Progressing, Cause: MembersUpdating, Claimable: 4, Again: left},
		},
		"rolling: a step of its size": {
			of(RollingUpdate, 4, times(4, stale), unavailable(3)),
			want{Delete: []int{0, 1, 2}, Admit: AdmitAny, State: Progressing, Cause: MembersUpdating, Claimable: 4, Again: left},
		},
		"rolling: waits for the last step": {
			of(RollingUpdate, 4, members(times(3, stale), []MemberState{unready(Current, time.Second)}), replacing(1)),
			want{Hide: []int{3}, Admit: AdmitAny, State: Progressing, Cause: MembersUpdating, Claimable: 3, Again: left},
		},
		"rolling: fresh ones are served, old ones hidden": {
			of(RollingUpdate, 4, members(times(3, stale), []MemberState{ready(Current, time.Second)})),
			want{Delete: []int{0}, Hide: []int{1, 2}, Admit: AdmitFresh, State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: time.Second},
		},
		"rolling: the platform would delete what is hidden": {
			of(RollingUpdate, 4, members(times(3, stale), []MemberState{ready(Current, time.Second)}), notHideable),
			want{Delete: []int{0}, Admit: AdmitFresh, State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: time.Second},
		},
		"rolling: the last fresh one was taken a moment ago": {
			of(RollingUpdate, 4, members(times(3, hidden(stale)), []MemberState{unready(Current, time.Second)}), func(s *PoolState) {
				s.Rollout.Fresh = before(400 * time.Millisecond)
			}, replacing(1)),
			want{Admit: AdmitFresh, State: Progressing, Cause: MembersUpdating, Again: 600 * time.Millisecond},
		},
		"rolling: the last fresh one was taken a while ago": {
			of(RollingUpdate, 4, members(times(3, hidden(stale)), []MemberState{unready(Current, time.Second)}), replacing(1)),
			want{Hide: []int{3}, Show: []int{0, 1, 2}, Admit: AdmitAny, State: Progressing, Cause: MembersUpdating, Claimable: 3, Again: left},
		},
		"rolling: not ready ones go first, gated ones not": {
			of(RollingUpdate, 4, members(times(2, stale), []MemberState{unready(Stale, hour), gated(unready(Stale, hour))})),
			want{Delete: []int{2}, Admit: AdmitAny, State: Progressing, Cause: MembersUpdating, Claimable: 2, Again: left},
		},
		"rolling: overdue, the old ones keep serving": {
			of(RollingUpdate, 4, members(times(3, hidden(stale)), []MemberState{unready(Current, time.Minute)}), late, replacing(1)),
			want{Hide: []int{3}, Show: []int{0, 1, 2}, Admit: AdmitAny, State: Failed, Cause: ProgressDeadlineExceeded, Claimable: 3},
		},
		"rolling: progress makes a failed rollout go on": {
			of(RollingUpdate, 2, []MemberState{stale, ready(Current, time.Minute)}, late, replacing(1)),
			want{Delete: []int{0}, Admit: AdmitFresh, State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: time.Second},
		},
		"rolling: what claims have replaced is no progress": {
			of(RollingUpdate, 2, []MemberState{failing(stale), ready(Current, time.Minute)}, late),
			want{Hide: nil, Admit: AdmitFresh, State: Failed, Cause: ProgressDeadlineExceeded, Claimable: 1, Again: time.Second},
		},
		"rolling: held up by others is not overdue": {
			of(RollingUpdate, 2, times(2, stale), late, func(s *PoolState) { s.Rollout.HeldUp = true }),
			want{Delete: []int{0}, Admit: AdmitAny, State: Progressing, Cause: Queued, Claimable: 2},
		},
		"rolling: time in a pause is not overdue": {
			of(RollingUpdate, 2, times(2, stale), late, func(s *PoolState) { s.Rollout.State = Paused }),
			want{Delete: []int{0}, Admit: AdmitAny, State: Progressing, Cause: MembersUpdating, Claimable: 2, Again: 10 * time.Minute},
		},
		"rolling, paused": {
			of(RollingUpdate, 2, times(2, stale), paused),
			want{Admit: AdmitAny, State: Paused, Cause: RolloutPaused, Claimable: 2},
		},
		"rolling: ready is not ready for long enough": {
			of(RollingUpdate, 2, []MemberState{stale, ready(Current, 10*time.Second)}, func(s *PoolState) { s.MinReady = 30 * time.Second }, replacing(1)),
			want{Hide: []int{0}, Admit: AdmitFresh, State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: time.Second},
		},
		"rolling: claims have taken more than a step": {
			of(RollingUpdate, 4, times(2, stale)),
			want{Delete: []int{0}, Admit: AdmitAny, State: Progressing, Cause: MembersUpdating, Claimable: 2, Again: left},
		},
		"scaled to nothing in the middle": {
			of(RollingUpdate, 0, nil), want{State: Complete, Cause: MembersUpToDate},
		},
		"complete stays complete while claims take members": {
			of(RollingUpdate, 4, times(1, current), func(s *PoolState) { s.Rollout.State = Complete }),
			want{State: Complete, Cause: MembersUpToDate, Claimable: 1},
		},
		"not full yet": {
			of(Recreate, 2, []MemberState{current, unready(Current, time.Second)}),
			want{State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: left},
		},
		"hidden first: what claims still see is hidden": {
			of(Recreate, 2, []MemberState{stale, current}, first),
			want{Hide: []int{0}, State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: left},
		},
		"hidden first: what nobody can be given, too": {
			of(OnReplenish, 2, []MemberState{ready(Unusable, hour), current}, first),
			want{Hide: []int{0}, State: Progressing, Cause: MembersUpdating, Claimable: 1},
		},
		"hidden first: not for long enough": {
			of(Recreate, 2, []MemberState{hiddenFor(stale, 1500*time.Millisecond), current}, first),
			want{State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: 500 * time.Millisecond},
		},
		"hidden first: each waits for itself": {
			of(Recreate, 3, []MemberState{hiddenFor(stale, time.Second), hiddenFor(stale, 2*time.Second), hiddenFor(stale, time.Minute)}, first),
			want{Delete: []int{1, 2}, State: Progressing, Cause: MembersUpdating, Again: time.Second},
		},
		"hidden first: what serves until it goes cannot be": {
			of(RollingUpdate, 4, times(4, stale), first),
			want{Delete: []int{0}, Admit: AdmitAny, State: Progressing, Cause: MembersUpdating, Claimable: 4, Again: left},
		},
		"hidden first: the platform would delete what is hidden": {
			of(Recreate, 1, times(1, stale), first, notHideable),
			want{Delete: []int{0}, State: Progressing, Cause: MembersUpdating, Again: left},
		},
		"hidden first: one that cannot be written to might never be": {
			of(Recreate, 2, []MemberState{{Class: Stale, Created: before(hour), ReadySince: before(hour), Shown: true, WriteFailed: true}, current}, first),
			want{Delete: []int{0}, State: Progressing, Cause: MembersUpdating, Claimable: 1, Again: left},
		},
		"a strategy of the platform's own": {
			of(PlatformOwned, 1, times(1, stale)),
			want{State: Progressing, Cause: StaleByStrategy, Claimable: 1},
		},
		"a strategy of the platform's own, stale ones withheld": {
			of(PlatformOwned, 3, []MemberState{stale, current, hidden(current)}, withheld),
			want{Hide: []int{0}, Show: []int{2}, State: Progressing, Cause: MembersUpdating, Claimable: 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := MakePlan(tc.pool)
			got := want{p.Delete, p.Hide, p.Show, p.Admit, p.Rollout.State, p.Cause, p.Counts.Claimable, p.Again}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("MakePlan() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestTimeHeldUpIsNotWithoutProgress(t *testing.T) {
	r := Rollout{Progressed: before(time.Hour)}
	for name, tc := range map[string]struct {
		was, is bool
		want    time.Time
	}{
		"never held up": {false, false, before(time.Hour)},
		"held up now":   {false, true, before(time.Hour)},
		"still":         {true, true, before(time.Hour)},
		"no more":       {true, false, noon},
	} {
		t.Run(name, func(t *testing.T) {
			r.HeldUp = tc.was
			got := r.Held(tc.is, noon)
			if diff := cmp.Diff(Rollout{Progressed: tc.want, HeldUp: tc.is}, got); diff != "" {
				t.Errorf("Held() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestSuspendsAttribution(t *testing.T) {
	young, old := time.Second, time.Hour
	since := before(time.Minute).Add(300 * time.Millisecond)
	cases := map[string]struct {
		members  []MemberState
		replicas int
		was      bool
		want     bool
	}{
		"five young unknown":               {times(5, ready(Unknown, young)), 20, false, true},
		"four are not enough":              {times(4, ready(Unknown, young)), 20, false, false},
		"as many as a small pool has":      {times(2, ready(Unknown, young)), 2, false, true},
		"from before the template changed": {times(5, ready(Unknown, old)), 20, false, false},
		"born in the second of the change": {times(5, MemberState{Class: Unknown, Created: since.Truncate(time.Second), ByPool: true}), 20, false, false},
		"one young current":                {members(times(5, ready(Unknown, young)), times(1, ready(Current, 0))), 20, false, false},
		"one young stale":                  {members(times(5, ready(Unknown, young)), times(1, ready(Stale, 0))), 20, false, false},
		"older ones do not matter":         {members(times(5, ready(Unknown, young)), times(9, ready(Stale, old))), 20, false, true},
		"unusable ones do not matter":      {members(times(5, ready(Unknown, young)), times(1, ready(Unusable, 0))), 20, false, true},
		"edited ones do not matter":        {members(times(5, ready(Unknown, young)), times(1, edited(ready(Current, 0)))), 20, false, true},
		"made by hand":                     {times(5, byHand(ready(Unknown, young))), 20, false, false},
		"by hand beside the pool's":        {members(times(5, ready(Unknown, young)), times(5, byHand(ready(Current, 0)))), 20, false, true},
		"one stale between current ones":   {members(times(1, ready(Current, 0)), times(5, ready(Unknown, young)), times(1, ready(Stale, old))), 20, false, false},
		"the newest comes last":            {members(times(1, ready(Stale, old)), times(5, ready(Unknown, young)), times(1, ready(Current, 0))), 20, false, false},
		"of equal age, they come first":    {members(times(5, ready(Unknown, young)), times(1, ready(Current, young))), 20, false, true},
		"of equal age, they come last":     {members(times(1, ready(Current, young)), times(5, ready(Unknown, young))), 20, false, false},
		"nothing to compare with":          {members(times(5, ready(Unknown, young)), times(1, ready(Unclassified, 0))), 20, false, true},
		"no pool":                          {nil, 0, false, false},
		"it stays, while claims take them": {times(1, ready(Unknown, young)), 20, true, true},
		"it stays, when claims took all":   {nil, 20, true, true},
		"it ends with one that is current": {members(times(5, ready(Unknown, young)), times(1, ready(Current, young))), 20, true, false},
		"not with one made by hand":        {members(times(5, ready(Unknown, young)), times(1, byHand(ready(Current, young)))), 20, true, true},
		"not with one from before":         {members(times(5, ready(Unknown, young)), times(1, ready(Current, old))), 20, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := SuspendsAttribution(tc.was, tc.members, tc.replicas, since); got != tc.want {
				t.Errorf("SuspendsAttribution() = %t, want %t", got, tc.want)
			}
		})
	}
}
