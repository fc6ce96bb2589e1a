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
		"nothing missing before":         {none.Delete(0, 0, 3), Replacements{{Deleted: 3}}},
		"replaced":                       {none.Delete(0, 0, 3).Fill(3), nil},
		"partly":                         {none.Delete(0, 0, 3).Fill(2), Replacements{{Deleted: 1}}},
		"claims took some before":        {none.Delete(2, 0, 3).Fill(3), Replacements{{Deleted: 2}}},
		"claims took some since":         {none.Delete(0, 0, 3).Delete(5, 0, 1).Fill(4), Replacements{{Ahead: 1, Deleted: 1}}},
		"not ready ones leave their gap": {none.Delete(4, 3, 0), Replacements{{Ahead: 1, Deleted: 3}}},
		"deleted twice":                  {none.Delete(0, 0, 3).Delete(3, 3, 0), Replacements{{Deleted: 3}}},
		"no more than is missing":        {none.Delete(0, 0, 3).Limit(1), Replacements{{Deleted: 1}}},
		"some went before":               {none.Delete(0, 0, 3).Postpone(2), Replacements{{Ahead: 2, Deleted: 3}}},
		"some were kept":                 {none.Delete(1, 0, 3).Keep(2), Replacements{{Ahead: 1, Deleted: 1}}},
		"all were kept":                  {none.Delete(0, 0, 3).Keep(3), Replacements{}},
		"all is awaited":                 {none.Delete(0, 0, 3).Await(5), Replacements{{Deleted: 3}, {Ahead: 2}}},
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
		r = r.Delete(r.Awaited()+1, 0, 1)
	}
	if len(r) > replacementsKept || r.Deleted() != 10*replacementsKept {
		t.Errorf("%d groups of %d members", len(r), r.Deleted())
	}
}

func TestAPlanKeepsToItsGrant(t *testing.T) {
	p := MakePlan(PoolState{
		Strategy: Recreate, Replicas: 4, MaxUnavailable: 1, Hideable: true, Now: noon, Granted: 1,
		Members: times(4, ready(Stale, time.Hour)), Rollout: Begin("r", "python", time.Time{}, noon),
	})
	if len(p.Delete) != 1 || p.Wanted != 4 || len(p.Hide) != 3 {
		t.Errorf("deletes %v of %d, hides %v, want one of four and the others hidden", p.Delete, p.Wanted, p.Hide)
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
				Strategy: tc.strategy, Paused: tc.paused, Replicas: 4, MaxUnavailable: 1, Hideable: true, Now: noon, Granted: 9,
				Members: times(4, ready(Former, time.Hour)), Rollout: Begin("r", "python", time.Time{}, noon),
			})
			if len(p.Delete) != tc.delete || len(p.Hide) != tc.hide || p.Admit == AdmitAny || p.Counts.Claimable > 0 {
				t.Errorf("deletes %v, hides %v, admits %q", p.Delete, p.Hide, p.Admit)
			}
		})
	}
}
