package freshness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReplacements(t *testing.T) {
	none := Replacements(nil)
	cases := map[string]struct {
		got  Replacements
		want Replacements
	}{
		"nothing missing before":         {none.Delete(0, 0, 3, 0), Replacements{{Deleted: 3}}},
		"replaced":                       {none.Delete(0, 0, 3, 0).Fill(3), nil},
		"partly":                         {none.Delete(0, 0, 3, 0).Fill(2), Replacements{{Deleted: 1}}},
		"claims took some before":        {none.Delete(2, 0, 3, 0).Fill(3), Replacements{{Deleted: 2}}},
		"claims took some since":         {none.Delete(0, 0, 3, 0).Delete(5, 0, 1, 0).Fill(4), Replacements{{Ahead: 1, Deleted: 1}}},
		"not ready ones leave their gap": {none.Delete(4, 3, 0, 0), Replacements{{Ahead: 1, Deleted: 3}}},
		"as many of either":              {none.Delete(3, 1, 1, 0), Replacements{{Ahead: 2, Deleted: 2}}},
		"the others are to go, too":      {none.Delete(20, 5, 0, 15), Replacements{{Deleted: 5}}},
		"claims took some beside them":   {none.Delete(20, 5, 0, 12), Replacements{{Ahead: 3, Deleted: 5}}},
		"they were awaited before":       {none.Await(20).Delete(20, 5, 0, 15), Replacements{{Deleted: 5}}},
		"some of them were":              {none.Await(20).Delete(20, 5, 0, 12), Replacements{{Ahead: 3}, {Deleted: 5}}},
		"those in place are to go again": {none.Delete(0, 0, 5, 0).Delete(20, 1, 0, 19), Replacements{{Deleted: 5}}},
		"and others with them":           {none.Delete(0, 0, 5, 0).Delete(20, 7, 0, 13), Replacements{{Deleted: 5}, {Deleted: 2}}},
		"those in place may start":       {none.Delete(0, 0, 5, 0).Delete(20, 1, 0, 14), Replacements{{Deleted: 5}, {Deleted: 1}}},
		"deleted twice":                  {none.Delete(0, 0, 3, 0).Delete(3, 3, 0, 0), Replacements{{Deleted: 3}}},
		"no more than is missing":        {none.Delete(0, 0, 3, 0).Limit(1), Replacements{{Deleted: 1}}},
		"others are not missing":         {none.Delete(0, 0, 3, 0).Await(5).Limit(2), Replacements{{Deleted: 2}}},
		"the last of the others first":   {none.Delete(1, 0, 3, 0).Await(6).Limit(5), Replacements{{Ahead: 1, Deleted: 3}, {Ahead: 1}}},
		"some went before":               {none.Delete(0, 0, 3, 0).Postpone(2), Replacements{{Ahead: 2, Deleted: 3}}},
		"what was awaited is deleted":    {none.Delete(0, 0, 3, 0).Await(4).Delete(4, 1, 0, 0), Replacements{{Deleted: 3}, {Deleted: 1}}},
		"all is awaited":                 {none.Delete(0, 0, 3, 0).Await(5), Replacements{{Deleted: 3}, {Ahead: 2}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// What is stored stays small, and says rather too much than too little.
func TestReplacementsAreBounded(t *testing.T) {
	var r Replacements
	for range 10 * replacementsKept {
		r = r.Delete(r.Awaited()+1, 0, 1, 0)
	}
	if len(r) != replacementsKept || r.Deleted() != 10*replacementsKept || r.Awaited() != 20*replacementsKept {
		t.Errorf("%d groups of %d members, %d awaited", len(r), r.Deleted(), r.Awaited())
	}
}

// Members that never started and have to wait for a grant keep nobody waiting: the
// first that are replaced give their slots back at once.
func TestMembersThatNeverStartedGoInTurn(t *testing.T) {
	s := PoolState{
		Strategy: Recreate, Replicas: 20, MaxUnavailable: 1, Hideable: true, Now: noon, Granted: 5, Deletes: 100,
		Members: times(20, unready(Stale, time.Hour)), Rollout: Begin("r", "python", time.Time{}, noon),
	}
	s.Rollout.Replacing = s.Rollout.Replacing.Await(20)
	p := MakePlan(s)
	if len(p.Delete) != 5 || p.Waiting != 15 {
		t.Fatalf("deletes %v, %d wait; want five of twenty", p.Delete, p.Waiting)
	}
	s.Rollout, s.Filled = p.Rollout, 5
	s.Members = append(times(15, unready(Stale, time.Hour)), times(5, ready(Current, time.Second))...)
	if p := MakePlan(s); len(p.Delete) != 5 || p.Wanted != 15 {
		t.Errorf("deletes %v of %d once the first five are replaced, want five of fifteen", p.Delete, p.Wanted)
	}
}

// A template that never starts, and then one that does, while all that may be
// replaced at once is: what stands in place of it goes at no further cost.
func TestATemplateThatNeverStartedIsFollowedByAnother(t *testing.T) {
	s := PoolState{
		Strategy: Recreate, Replicas: 20, MaxUnavailable: 1, Hideable: true, Now: noon, Deletes: 100,
		Members: append(times(15, unready(Stale, time.Hour)), times(5, unready(Stale, time.Minute))...),
		Rollout: Begin("r", "python", time.Time{}, noon),
	}
	s.Rollout.Replacing = Replacements{{Deleted: 5}}
	p := MakePlan(s)
	if len(p.Delete) != 5 || p.Rollout.Replacing.Deleted() != 5 {
		t.Fatalf("deletes %v, %d are being replaced; want five, and five", p.Delete, p.Rollout.Replacing.Deleted())
	}
	for _, i := range p.Delete {
		if i < 15 {
			t.Errorf("deletes member %d, which stands in place of none that was deleted", i)
		}
	}
}

func TestAPlanKeepsToItsGrant(t *testing.T) {
	p := MakePlan(PoolState{
		Strategy: Recreate, Replicas: 4, MaxUnavailable: 1, Hideable: true, Now: noon, Granted: 1, Deletes: 100,
		Members: times(4, ready(Stale, time.Hour)), Rollout: Begin("r", "python", time.Time{}, noon),
	})
	if len(p.Delete) != 1 || p.Wanted != 4 || len(p.Hide) != 3 {
		t.Errorf("deletes %v of %d, hides %v, want one of four and the others hidden", p.Delete, p.Wanted, p.Hide)
	}
}

// A plan that was made on what is stored keeps to what was granted on what the
// cache showed, even when less is replaced by its lights.
func TestAGrantIsForAllThatIsReplaced(t *testing.T) {
	s := PoolState{
		Strategy: Recreate, Replicas: 4, MaxUnavailable: 1, Hideable: true, Now: noon, Granted: 1, Deletes: 100,
		Members: times(3, ready(Stale, time.Hour)), Rollout: Begin("r", "python", time.Time{}, noon),
	}
	s.Rollout.Replacing = Replacements{{Deleted: 1}}
	if p := MakePlan(s); len(p.Delete) != 0 || p.Wanted != 3 {
		t.Errorf("deletes %v of %d, want none: one is being replaced", p.Delete, p.Wanted)
	}
}

// Deletes that were not carried out take nothing off what was being replaced
// before.
func TestWhatIsReplacedWhenDeletesFail(t *testing.T) {
	s := PoolState{
		Strategy: Recreate, Replicas: 4, MaxUnavailable: 1, Hideable: true, Now: noon, Granted: 4, Deletes: 100,
		Members: append(times(1, unready(Stale, time.Hour)), times(2, ready(Stale, time.Hour))...), Rollout: Begin("r", "python", time.Time{}, noon),
	}
	s.Rollout.Replacing = Replacements{{Deleted: 2}}
	p := MakePlan(s)
	cases := map[string]struct {
		deleted []int
		want    int
	}{
		"all":                       {p.Delete, 4},
		"the one that is not ready": {[]int{0}, 2},
		"one that is ready":         {[]int{1}, 3},
		"none":                      {nil, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if n := p.Replacing(tc.deleted).Deleted(); n != tc.want {
				t.Errorf("%d members are being replaced, want %d", n, tc.want)
			}
		})
	}
	if n := p.Rollout.Replacing.Deleted(); n != 4 || len(p.Delete) != 3 {
		t.Errorf("%d members are being replaced by the plan, want 4 after three deletes", n)
	}
}

// Nobody deleted what is missing from a pool that was never looked at before. From
// one that was, claims may have taken it before the last leader deleted anything.
func TestResume(t *testing.T) {
	cases := map[string]struct {
		stored Rollout
		want   Replacements
	}{
		"nothing is stored":           {Rollout{}, Replacements{{Ahead: 3}}},
		"complete":                    {Rollout{State: Complete}, nil},
		"progressing":                 {Rollout{State: Progressing, Replacing: Replacements{{Deleted: 2}}}, Replacements{{Ahead: 1, Deleted: 2}}},
		"former scheduler's replaced": {Rollout{State: Complete, Replacing: Replacements{{Deleted: 2}}}, Replacements{{Ahead: 1, Deleted: 2}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := MakePlan(PoolState{Strategy: PlatformOwned, Replicas: 3, Now: noon, Rollout: tc.stored.Resume()})
			if diff := cmp.Diff(tc.want, p.Rollout.Replacing); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// A claim that went before the last delete is counted once, also when the first
// plan to see it is one for another revision.
func TestAClaimBeforeADeleteAndAnEditAfterIt(t *testing.T) {
	was := Begin("r", "python", time.Time{}, noon)
	was.Replacing = Replacements(nil).Delete(0, 0, 1, 0)
	p := MakePlan(PoolState{
		Strategy: Recreate, Replicas: 4, MaxUnavailable: 4, Now: noon, Overtaken: 1, Granted: 0, Deletes: 100,
		Members: times(2, ready(Stale, time.Hour)), Rollout: was.Follow("s", "python", time.Time{}, noon),
	})
	if diff := cmp.Diff(Replacements{{Ahead: 1, Deleted: 1}}, p.Rollout.Replacing); diff != "" || len(p.Delete) > 0 {
		t.Errorf("deletes %v; replacing (-want,+got):\n%s", p.Delete, diff)
	}
}

// What is of another template nobody can be given, whatever is admitted.
func TestFormerMembers(t *testing.T) {
	cases := map[string]struct {
		strategy     Strategy
		paused       bool
		delete, hide int
	}{
		"rolling":              {RollingUpdate, false, 1, 3},
		"rolling, paused":      {RollingUpdate, true, 0, 4},
		"recreate":             {Recreate, false, 4, 0},
		"on replenish":         {OnReplenish, false, 4, 0},
		"on replenish, paused": {OnReplenish, true, 0, 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := MakePlan(PoolState{
				Strategy: tc.strategy, Paused: tc.paused, Replicas: 4, MaxUnavailable: 1, Hideable: true, Now: noon, Granted: 9, Deletes: 100,
				Members: times(4, ready(Former, time.Hour)), Rollout: Begin("r", "python", time.Time{}, noon),
			})
			if len(p.Delete) != tc.delete || len(p.Hide) != tc.hide || p.Admit == AdmitAny || p.Counts.Claimable > 0 {
				t.Errorf("deletes %v, hides %v, admits %q", p.Delete, p.Hide, p.Admit)
			}
		})
	}
}
