package freshness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReplacementPolicy(t *testing.T) {
	const hour = time.Hour
	young := unready(Unknown, time.Second)
	cases := map[string]struct {
		policy ReplacementPolicy
		member MemberState
		want   bool
	}{
		"recreate, stale":                          {ReplacementPolicy{Strategy: Recreate}, ready(Stale, hour), true},
		"recreate, stale, not ready":               {ReplacementPolicy{Strategy: Recreate}, unready(Stale, hour), true},
		"recreate, gated":                          {ReplacementPolicy{Strategy: Recreate}, gated(unready(Stale, hour)), true},
		"recreate, paused":                         {ReplacementPolicy{Strategy: Recreate, Paused: true}, unready(Stale, hour), false},
		"recreate, failed":                         {ReplacementPolicy{Strategy: Recreate, Failed: true}, unready(Stale, hour), true},
		"recreate, current":                        {ReplacementPolicy{Strategy: Recreate}, unready(Current, hour), false},
		"recreate, nothing to compare with":        {ReplacementPolicy{Strategy: Recreate}, unready(Unclassified, hour), false},
		"recreate, leaving":                        {ReplacementPolicy{Strategy: Recreate}, leaving(unready(Stale, hour)), false},
		"recreate, unknown":                        {ReplacementPolicy{Strategy: Recreate, Started: noon}, unready(Unknown, hour), true},
		"recreate, unknown, suspended":             {ReplacementPolicy{Strategy: Recreate, Started: noon, Suspended: true}, unready(Unknown, hour), false},
		"recreate, unknown, born since":            {ReplacementPolicy{Strategy: Recreate, Started: before(hour)}, young, false},
		"recreate, unknown, born since with peers": {ReplacementPolicy{Strategy: Recreate, Started: before(hour), Understood: true}, young, true},
		"rolling, not ready":                       {ReplacementPolicy{Strategy: RollingUpdate}, unready(Stale, hour), true},
		"rolling, ready: it has to wait":           {ReplacementPolicy{Strategy: RollingUpdate}, ready(Stale, hour), false},
		"rolling, gated":                           {ReplacementPolicy{Strategy: RollingUpdate}, gated(unready(Stale, hour)), false},
		"rolling, failed":                          {ReplacementPolicy{Strategy: RollingUpdate, Failed: true}, unready(Stale, hour), false},
		"on replenish":                             {ReplacementPolicy{Strategy: OnReplenish}, unready(Stale, hour), false},
		"the platform's own":                       {ReplacementPolicy{Strategy: PlatformOwned}, unready(Stale, hour), false},
		"unusable, under every strategy":           {ReplacementPolicy{Strategy: OnReplenish, Paused: true}, unready(Unusable, hour), true},
		"on replenish, former":                     {ReplacementPolicy{Strategy: OnReplenish}, ready(Former, hour), true},
		"on replenish, former, paused":             {ReplacementPolicy{Strategy: OnReplenish, Paused: true}, ready(Former, hour), false},
		"on replenish, former, leaving":            {ReplacementPolicy{Strategy: OnReplenish}, leaving(ready(Former, hour)), false},
		"unusable, leaving":                        {ReplacementPolicy{Strategy: OnReplenish}, leaving(unready(Unusable, hour)), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.policy.DeletesNow(tc.member); got != tc.want {
				t.Errorf("DeletesNow() = %v, want %v", got, tc.want)
			}
		})
	}
}

// A member whose Pod a scheduler has that is to go is replaced in steps.
func TestMembersOnAFormerSchedulerAreReplacedInSteps(t *testing.T) {
	const hour = time.Hour
	former := func(m MemberState) MemberState { m.OnFormerScheduler = true; return m }
	current := ready(Current, hour)
	all := times(4, former(current))
	cases := map[string]struct {
		state     PoolState
		replacing int
		want      []int
	}{
		"on replenish":                {PoolState{Strategy: OnReplenish, Members: all}, 0, []int{0}},
		"recreate":                    {PoolState{Strategy: Recreate, Members: all}, 0, []int{0}},
		"rolling":                     {PoolState{Strategy: RollingUpdate, Members: all}, 0, []int{0}},
		"paused":                      {PoolState{Strategy: OnReplenish, Paused: true, Members: all}, 0, nil},
		"one is being replaced":       {PoolState{Strategy: OnReplenish, Members: members(times(3, former(current)), times(1, unready(Current, 0)))}, 1, nil},
		"stale ones go once":          {PoolState{Strategy: Recreate, Members: members(times(1, former(ready(Stale, hour))), times(3, current))}, 0, []int{0}},
		"one that leaves is left":     {PoolState{Strategy: OnReplenish, Members: members(times(1, leaving(former(ready(Current, 2*hour)))), times(3, current))}, 0, nil},
		"others stay":                 {PoolState{Strategy: OnReplenish, Members: times(4, current)}, 0, nil},
		"not ready: its Pod goes":     {PoolState{Strategy: OnReplenish, Members: members(times(3, current), times(1, former(unready(Current, hour))))}, 0, nil},
		"beside stale ones, one step": {PoolState{Strategy: RollingUpdate, Members: members(times(2, former(current)), times(2, ready(Stale, 2*hour)))}, 0, []int{2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.state.Replicas, tc.state.MaxUnavailable, tc.state.Now = 4, 1, noon
			tc.state.Rollout = Begin("r", "python", time.Time{}, before(hour))
			tc.state.Rollout.Replacing, tc.state.Granted, tc.state.Deletes = Replacements(nil).Delete(0, 0, tc.replacing, 0), 100, 100
			if diff := cmp.Diff(tc.want, MakePlan(tc.state).Delete); diff != "" {
				t.Errorf("deleted (-want,+got):\n%s", diff)
			}
		})
	}
}

// A node that is to be empty loses its idle members in steps, whatever else is going on in
// their pool, and those at once that nobody could be given.
func TestMembersLeaveCordonedNodes(t *testing.T) {
	const hour = time.Hour
	cordoned := func(m MemberState) MemberState { m.OnCordonedNode = true; return m }
	current := ready(Current, hour)
	all := times(4, cordoned(current))
	cases := map[string]struct {
		state     PoolState
		replacing int
		want      []int
	}{
		"on replenish":               {PoolState{Strategy: OnReplenish, Members: all}, 0, []int{0}},
		"the platform's own":         {PoolState{Strategy: PlatformOwned, Members: all}, 0, []int{0}},
		"recreate":                   {PoolState{Strategy: Recreate, Members: all}, 0, []int{0}},
		"rolling":                    {PoolState{Strategy: RollingUpdate, Members: all}, 0, []int{0}},
		"paused":                     {PoolState{Strategy: OnReplenish, Paused: true, Members: all}, 0, []int{0}},
		"of which nothing is known":  {PoolState{Strategy: PlatformOwned, Members: times(4, cordoned(ready(Unclassified, hour)))}, 0, []int{0}},
		"as many as may be missing":  {PoolState{Strategy: OnReplenish, MaxUnavailable: 3, Members: all}, 0, []int{0, 1, 2}},
		"one is being replaced":      {PoolState{Strategy: OnReplenish, Members: members(times(3, cordoned(current)), times(1, unready(Current, 0)))}, 1, nil},
		"not ready: at once":         {PoolState{Strategy: OnReplenish, Members: members(times(2, current), times(2, cordoned(unready(Current, hour))))}, 0, []int{3, 2}},
		"not ready, paused":          {PoolState{Strategy: OnReplenish, Paused: true, Members: members(times(3, current), times(1, cordoned(unready(Current, hour))))}, 0, []int{3}},
		"not ready, of another node": {PoolState{Strategy: OnReplenish, Members: members(times(3, current), times(1, unready(Current, hour)))}, 0, nil},
		"leaving, not ready":         {PoolState{Strategy: OnReplenish, Members: members(times(3, current), times(1, leaving(cordoned(unready(Current, hour)))))}, 0, nil},
		"leaving":                    {PoolState{Strategy: OnReplenish, Members: members(times(3, current), times(1, leaving(cordoned(current))))}, 0, nil},
		"before older stale ones":    {PoolState{Strategy: RollingUpdate, Members: members(times(2, ready(Stale, 2*hour)), times(1, cordoned(current)), times(1, ready(Stale, 3*hour)))}, 0, []int{2}},
		"the oldest of them first":   {PoolState{Strategy: OnReplenish, Members: members(times(2, cordoned(current)), times(1, cordoned(ready(Current, 2*hour))), times(1, current))}, 0, []int{2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.state.Replicas, tc.state.MaxUnavailable, tc.state.Now = 4, max(tc.state.MaxUnavailable, 1), noon
			tc.state.Rollout = Begin("r", "python", time.Time{}, before(hour))
			tc.state.Rollout.Replacing, tc.state.Granted, tc.state.Deletes = Replacements(nil).Delete(0, 0, tc.replacing, 0), 100, 100
			plan := MakePlan(tc.state)
			if diff := cmp.Diff(tc.want, plan.Delete); diff != "" {
				t.Errorf("deleted (-want,+got):\n%s", diff)
			}
			if len(plan.Hide) > 0 {
				t.Errorf("hidden: %v", plan.Hide)
			}
		})
	}
}

// One that cannot be deleted is counted, so that somebody sees why a node is not empty.
func TestMembersThatStayOnCordonedNodesAreCounted(t *testing.T) {
	m := failing(ready(Current, time.Hour))
	m.OnCordonedNode = true
	got := MakePlan(PoolState{Strategy: OnReplenish, Replicas: 1, MaxUnavailable: 1, Granted: 1, Deletes: 100, Now: noon, Members: times(1, m)}).Counts.WriteFailed
	if got != 1 {
		t.Errorf("%d members could not be written to, want 1", got)
	}
}

func TestBarePodReplacementPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		verdict Verdict
		want    bool
	}{
		"its own lasting fault": {Verdict{Reason: StaleRevision}, true},
		"tolerated":             {Verdict{Allowed: true, Tolerated: true, Reason: StaleRevision}, false},
		"a claim's fault":       {Verdict{Reason: ClaimGone}, false},
		"nothing":               {Verdict{Allowed: true}, false},
	} {
		if got := tc.verdict.DeletesBarePod(); got != tc.want {
			t.Errorf("%s: BarePodGoes() = %v, want %v", name, got, tc.want)
		}
	}
}
