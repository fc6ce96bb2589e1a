package freshness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// verdict is what of a Verdict the tables below compare.
type verdict struct {
	Allowed, Tolerated bool
	Reason             Reason
}

func verdictOn(s Snapshot) verdict {
	v := Judge(s)
	return verdict{v.Allowed, v.Tolerated, v.Reason}
}

// While nobody understands what a pool's members are built from, one that equals
// nothing known is let through, but for one that looks like an older revision.
func TestJudgeWhileAttributionIsSuspended(t *testing.T) {
	v1, v2 := blueprint(t, "sandbox:v1"), blueprint(t, "sandbox:v2")
	odd := blueprint(t, "sandbox:v2", "hostNetwork", true)
	nearer := blueprint(t, "sandbox:v1", "hostNetwork", true)
	suspended := func(hash string) func(*Snapshot) {
		return func(s *Snapshot) { s.Pool.Suspended = hash }
	}
	cases := map[string]struct {
		changes []func(*Snapshot)
		want    verdict
	}{
		"unknown":                           {[]func(*Snapshot){builtFrom(odd), suspended(v2.Hash())}, verdict{true, false, UnknownRevision}},
		"unknown, nothing is suspended":     {[]func(*Snapshot){builtFrom(odd)}, verdict{false, false, UnknownRevision}},
		"unknown, suspended for a revision": {[]func(*Snapshot){builtFrom(odd), suspended(v1.Hash())}, verdict{false, false, UnknownRevision}},
		"unknown, nearer to an older one":   {[]func(*Snapshot){builtFrom(nearer), suspended(v2.Hash())}, verdict{false, false, UnknownRevision}},
		"known to be older":                 {[]func(*Snapshot){builtFrom(v1), suspended(v2.Hash())}, verdict{false, false, StaleRevision}},
		"fresh":                             {[]func(*Snapshot){suspended(v2.Hash())}, verdict{true, false, Fresh}},
		"unknown, but dead":                 {[]func(*Snapshot){builtFrom(odd), suspended(v2.Hash()), func(s *Snapshot) { s.Pod.Deleting = true }}, verdict{false, false, PodTerminating}},
		"unknown, and so is its pod":        {[]func(*Snapshot){builtFrom(odd), suspended(v2.Hash()), func(s *Snapshot) { s.Member.Generation, s.Pod.Content = 2, odd }}, verdict{true, false, UnknownRevision}},
		"unknown, and its pod is older":     {[]func(*Snapshot){builtFrom(odd), suspended(v2.Hash()), func(s *Snapshot) { s.Member.Generation, s.Pod.Content = 2, v1 }}, verdict{false, false, StaleRevision}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, verdictOn(world(t, tc.changes...))); diff != "" {
				t.Errorf("Judge() (-want,+got):\n%s", diff)
			}
		})
	}
}

// A restart makes every member stale that was there before it, whatever its
// content.
func TestJudgeAfterARestart(t *testing.T) {
	restart := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	created := func(at time.Time) func(*Snapshot) {
		return func(s *Snapshot) { s.Pool.Restarted, s.Member.Created = restart, at }
	}
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		want   verdict
	}{
		"born before":                    {created(restart.Add(-time.Second)), verdict{false, false, StaleRevision}},
		"born in its second":             {created(restart), verdict{false, false, StaleRevision}},
		"born after":                     {created(restart.Add(time.Second)), verdict{true, false, Fresh}},
		"born before, under OnReplenish": {func(s *Snapshot) { created(restart.Add(-time.Second))(s); s.Pool.Strategy = OnReplenish }, verdict{true, true, StaleRevision}},
		"no restart":                     {func(s *Snapshot) { s.Member.Created = restart }, verdict{true, false, Fresh}},
		"to be born":                     {created(time.Time{}), verdict{true, false, Fresh}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, op := range []Operation{Bind, Idle, Stored} {
				got := verdictOn(world(t, tc.change, func(s *Snapshot) { s.Operation = op }))
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("Judge() of %s (-want,+got):\n%s", op, diff)
				}
			}
		})
	}
}

// A template whose members never get ready must not cost the old ones that still
// serve, even those that a step would allow.
func TestAFailedRolloutReplacesNothing(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	started := now.Add(-time.Hour)
	old := MemberState{Class: Stale, Created: started.Add(-time.Hour), ReadySince: started.Add(-time.Hour), Shown: true}
	failing := old
	failing.ReadySince = time.Time{}
	for name, tc := range map[string]struct {
		deadline  time.Duration
		replacing Replacements
		second    MemberState
		want      []int
		state     State
	}{
		"in time": {2 * time.Hour, Replacements{{Deleted: 1}}, old, []int{0}, Progressing},
		"overdue": {time.Minute, Replacements{{Deleted: 1}}, old, nil, Failed},
		// Else it would stay so for ever: nothing is there to get ready.
		"overdue, and nothing is being replaced": {time.Minute, nil, old, []int{0}, Failed},
		"in time, and an old one is not ready":   {2 * time.Hour, Replacements{{Deleted: 1}}, failing, []int{1}, Progressing},
		// The old one may get ready again, and none of the new ones did.
		"overdue, and an old one is not ready": {time.Minute, Replacements{{Deleted: 1}}, failing, nil, Failed},
	} {
		t.Run(name, func(t *testing.T) {
			p := MakePlan(PoolState{
				Strategy: RollingUpdate, Replicas: 2 + tc.replacing.Deleted(), MaxUnavailable: 1 + tc.replacing.Deleted(), Deadline: tc.deadline, Now: now,
				Members: []MemberState{old, tc.second}, Granted: 2, Deletes: 100,
				Rollout: Rollout{Revision: "r", Started: started, Progressed: started, Fresh: started, State: Progressing, Replacing: tc.replacing},
			})
			if diff := cmp.Diff(tc.want, p.Delete); diff != "" || p.Rollout.State != tc.state {
				t.Errorf("state %s, want %s; deletes (-want,+got):\n%s", p.Rollout.State, tc.state, diff)
			}
		})
	}
}

// Who is of no pool was not restarted with one, and only claims ask for a template by
// its name.
func TestRulesThatAreOfPoolsAndClaimsOnly(t *testing.T) {
	s := world(t, func(s *Snapshot) { s.Pool, s.Member.Created, s.Member.Template = nil, noon, "another" })
	for _, op := range []Operation{Bind, Idle, Stored} {
		s.Operation = op
		if v := isYoung(s); v != nil {
			t.Errorf("%s: without a pool, too young a restart: %s", op, v.Detail)
		}
		if v := templateInForce(s); v != nil {
			t.Errorf("%s: the template's name is asked for: %s", op, v.Detail)
		}
	}
}
