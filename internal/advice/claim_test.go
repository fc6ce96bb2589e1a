package advice

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClaim(t *testing.T) {
	stock := func(change func(*Stock)) []Stock {
		s := Stock{Name: "python", Replicas: 10, Ready: 10, Idle: 10, Takeable: 10, Strategy: "Recreate"}
		change(&s)
		return []Stock{s}
	}
	full := stock(func(*Stock) {})
	empty := stock(func(s *Stock) { s.Ready, s.Idle, s.Takeable = 0, 0, 0 })
	off := stock(func(s *Stock) { s.Replicas, s.Ready, s.Idle, s.Takeable = 0, 0, 0, 0 })
	onPool := Claim{Pool: "python", Template: "t", NeedsPool: true}
	with := func(c Claim, change func(*Claim)) Claim {
		change(&c)
		return c
	}
	type want struct {
		Outcome Outcome
		Line    string
		Advised bool
	}
	cases := map[string]struct {
		claim Claim
		want  want
	}{
		"warm":                      {with(onPool, func(c *Claim) { c.Pools = full }), want{Warm, "this claim gets a member of pool python (10 of 10 idle members can be claimed)", false}},
		"no pool":                   {with(onPool, func(c *Claim) { c.PoolGone = true }), want{Waits, "this claim waits: pool python does not exist", true}},
		"no pool, its own template": {with(onPool, func(c *Claim) { c.PoolGone, c.NeedsPool = true, false }), want{Cold, "this claim will cold-start: pool python does not exist", true}},
		"no pool, and env":          {with(onPool, func(c *Claim) { c.PoolGone, c.OwnMake = true, []string{"env"} }), want{Waits, "this claim waits: pool python does not exist", true}},
		"no template":               {with(onPool, func(c *Claim) { c.TemplateGone = true }), want{Waits, "this claim waits: template t of pool python does not exist", true}},
		"no template of its own":    {Claim{Template: "t", TemplateGone: true}, want{Waits, "this claim waits: template t does not exist", true}},
		"refused by the template":   {with(onPool, func(c *Claim) { c.Refused, c.OwnMake = "no env", []string{"env"} }), want{Impossible, "this claim gets no sandbox: no env", true}},
		"always cold":               {with(onPool, func(c *Claim) { c.OwnMake = []string{"env", "volumeClaimTemplates"} }), want{ColdByDesign, "this claim cold-starts, as it always does: it sets env and volumeClaimTemplates", false}},
		"asks for no pool":          {Claim{Template: "t"}, want{ColdByDesign, "this claim cold-starts, as it always does: it asks for no pool", false}},
		"replicas 0":                {with(onPool, func(c *Claim) { c.Pools = off }), want{ColdByDesign, "this claim cold-starts, as it always does: pool python has replicas 0", false}},
		"empty":                     {with(onPool, func(c *Claim) { c.Pools = empty }), want{Cold, "this claim will cold-start: pool python has no idle member (0 of 10)", true}},
		"none ready":                {with(onPool, func(c *Claim) { c.Pools = stock(func(s *Stock) { s.Ready = 0 }) }), want{Cold, "this claim will cold-start: pool python has no ready member (0 of 10)", true}},
		"all stale":                 {with(onPool, func(c *Claim) { c.Pools = stock(func(s *Stock) { s.Takeable, s.Stale = 0, 10 }) }), want{Cold, "this claim will cold-start: pool python has no member for it (of 10 idle: 10 stale, which Recreate does not serve)", true}},
		"each for another reason": {with(onPool, func(c *Claim) {
			c.Pools = stock(func(s *Stock) { s.Takeable, s.Stale, s.Foreign, s.Hidden, s.Unready = 0, 4, 1, 3, 2 })
		}), want{Cold, "this claim will cold-start: pool python has no member for it (of 10 idle: 4 stale, which Recreate does not serve; 1 of another template; 3 hidden; 2 not ready)", true}},
		"any pool, the second is ok": {Claim{Template: "t", Pools: append(empty, full...)}, want{Warm, "this claim gets a member of pool python (10 of 10 idle members can be claimed)", false}},
		"any pool, none has one":     {Claim{Template: "t", Pools: append(empty, empty...)}, want{Cold, "this claim will cold-start: none of the 2 pools of template t has a member for it", true}},
		"any pool, one of them off":  {Claim{Template: "t", Pools: append(empty, off...)}, want{Cold, "this claim will cold-start: none of the 2 pools of template t has a member for it", true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			outcome, line := tc.claim.Outcome()
			if diff := cmp.Diff(tc.want, want{outcome, line, len(tc.claim.Lines()) > 0}); diff != "" {
				t.Errorf("Outcome() (-want,+got):\n%s", diff)
			}
		})
	}
}
