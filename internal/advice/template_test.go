package advice

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

var (
	recreates = Rollout{Annotation: "Recreate", Enforced: true}
	rolls     = Rollout{Annotation: "RollingUpdate", Enforced: true}
	keeps     = Rollout{Spec: "OnReplenish", Enforced: true}
)

func change(pools ...PoolChange) TemplateChange { return TemplateChange{Pools: pools} }

func TestTemplateLines(t *testing.T) {
	long := strings.Repeat("n", 253)
	cases := map[string]struct {
		change TemplateChange
		want   []string
	}{
		"no pool":             {change(), nil},
		"nothing gets stale":  {change(PoolChange{Name: "python", Rollout: recreates, Idle: 5, StayStale: 3, BecomeFresh: 2}), nil},
		"one member":          {change(PoolChange{Name: "python", Rollout: recreates, BecomeStale: 1}), []string{"1 idle member becomes stale (python 1: Recreate deletes it)"}},
		"two policies":        {change(PoolChange{Name: "node", Rollout: keeps, BecomeStale: 10}, PoolChange{Name: "python", Rollout: recreates, BecomeStale: 20}), []string{"30 idle members become stale (python 20: Recreate deletes them; node 10: OnReplenish keeps serving them)"}},
		"one policy":          {change(PoolChange{Name: "b", Rollout: rolls, BecomeStale: 2}, PoolChange{Name: "a", Rollout: rolls, BecomeStale: 2}), []string{"4 idle members become stale (a 2, b 2: RollingUpdate replaces them step by step)"}},
		"a pool without any":  {change(PoolChange{Name: "python", Rollout: recreates, BecomeStale: 2}, PoolChange{Name: "full", Rollout: recreates, Idle: 3}), []string{"2 idle members become stale (python 2: Recreate deletes them)"}},
		"three by name":       {change(pools("p", 3, keeps)...), []string{"6 idle members become stale (p3 3, p2 2, p1 1: OnReplenish keeps serving them)"}},
		"a fourth one":        {change(pools("p", 4, keeps)...), []string{"10 idle members become stale (p4 4, p3 3, p2 2: OnReplenish keeps serving them; 1 in 1 more pool)"}},
		"the rest as numbers": {change(pools("p", 500, recreates)...), []string{"125250 idle members become stale (p500 500, p499 499, p498 498: Recreate deletes them; 123753 in 497 more pools)"}},
		"not all looked at":   {change(PoolChange{Name: "python", Rollout: recreates, BecomeStale: 900, Guessed: 900}), []string{"up to 900 idle members become stale (python 900: Recreate deletes them)"}},
		"long names": {
			change(PoolChange{Name: long, Rollout: recreates, BecomeStale: 3}, PoolChange{Name: long, Rollout: keeps, BecomeStale: 2}, PoolChange{Name: long, Rollout: rolls, BecomeStale: 1}),
			[]string{"6 idle members become stale (" + strings.Repeat("n", 39) + "… 3: Recreate deletes them; " + strings.Repeat("n", 39) +
				"… 2: OnReplenish keeps serving them; " + strings.Repeat("n", 39) + "… 1: RollingUpdate replaces it step by step)"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.change.Lines()); diff != "" {
				t.Errorf("Lines() (-want,+got):\n%s", diff)
			}
		})
	}
}

// pools returns pools p1 to pN with as many stale members as their number.
func pools(prefix string, n int, r Rollout) []PoolChange {
	out := make([]PoolChange, n)
	for i := range out {
		out[i] = PoolChange{Name: fmt.Sprintf("%s%d", prefix, i+1), Rollout: r, BecomeStale: i + 1}
	}
	return out
}

func TestRollout(t *testing.T) {
	type want struct {
		Policy      StalePolicy
		ServesStale bool
	}
	cases := map[string]struct {
		rollout Rollout
		want    want
	}{
		"nothing said":                           {Rollout{Default: freshness.OnReplenish, Enforced: true}, want{Kept, true}},
		"nothing said, audit":                    {Rollout{Default: freshness.OnReplenish}, want{Kept, true}},
		"the configured default":                 {Rollout{Default: freshness.Recreate, Enforced: true}, want{Deleted, false}},
		"the configured default, audit":          {Rollout{Default: freshness.Recreate}, want{KeptInAudit, true}},
		"recreated by the platform":              {Rollout{Spec: "Recreate", Enforced: true}, want{Deleted, false}},
		"recreated by the platform, audit":       {Rollout{Spec: "Recreate"}, want{Deleted, false}},
		"the platform does not read annotations": {Rollout{Annotation: "OnReplenish", Spec: "Recreate", Enforced: true}, want{Deleted, false}},
		"annotation Recreate":                    {Rollout{Annotation: "Recreate", Spec: "OnReplenish", Enforced: true}, want{Deleted, false}},
		"annotation Recreate, audit":             {Rollout{Annotation: "Recreate", Spec: "OnReplenish"}, want{KeptInAudit, true}},
		"RollingUpdate":                          {Rollout{Annotation: "RollingUpdate", Enforced: true}, want{Replaced, false}},
		"RollingUpdate that serves any":          {Rollout{Annotation: "RollingUpdate", Enforced: true, AdmitAny: true}, want{Replaced, true}},
		"RollingUpdate, audit":                   {Rollout{Annotation: "RollingUpdate"}, want{KeptInAudit, true}},
		"unreadable":                             {Rollout{Annotation: "Rolling", Enforced: true}, want{Avoided, false}},
		"unreadable, audit":                      {Rollout{Annotation: "Rolling"}, want{KeptInAudit, true}},
		"a strategy of the platform's":           {Rollout{Spec: "BlueGreen", Enforced: true}, want{LeftToPlatform, true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := want{tc.rollout.StalePolicy(), tc.rollout.ServesStale()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Rollout (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestEveryFateHasWords(t *testing.T) {
	seen := map[string]StalePolicy{}
	for _, f := range []StalePolicy{Deleted, Replaced, Kept, KeptInAudit, Avoided, LeftToPlatform} {
		for _, count := range []int{1, 2} {
			if other, twice := seen[f.Text(count)]; twice {
				t.Errorf("%s and %s of %d are both %q", f, other, count, f.Text(count))
			}
			seen[f.Text(count)] = f
		}
	}
}

func FuzzLinesAreShort(f *testing.F) {
	f.Add("python", 3, 7, "Recreate", "RollingUpdate", true)
	f.Add(strings.Repeat("n", 253), 501, 1<<40, "Rolling", "OnReplenish", false)
	f.Fuzz(func(t *testing.T, name string, count, stale int, first, second string, enforced bool) {
		var c TemplateChange
		for i := range max(0, min(count, 1000)) {
			r := Rollout{Annotation: first, Enforced: enforced}
			if i%3 == 1 {
				r = Rollout{Annotation: second, Spec: first, Enforced: enforced}
			}
			c.Pools = append(c.Pools, PoolChange{Name: name, Rollout: r, BecomeStale: max(0, min(stale, 1<<20))})
		}
		claim := Claim{Pool: name, Template: name, Pools: []Stock{{Name: name, Replicas: count, Ready: stale, Idle: 1, Stale: 1, Strategy: "RollingUpdate"}}}
		lines := append(c.Lines(), claim.Lines()...)
		for _, change := range []func(*Claim){
			func(c *Claim) { c.PoolGone, c.NeedsPool = true, true },
			func(c *Claim) { c.TemplateGone = true },
			func(c *Claim) { c.Refused = name + name },
			func(c *Claim) { c.Pools = append(c.Pools, c.Pools...) },
		} {
			varied := claim
			change(&varied)
			_, line := varied.Outcome()
			lines = append(lines, line)
		}
		for _, line := range append(lines, Ignored(Inputs{}, Inputs{Annotations: map[string]string{settings.Prefix + name: ""}})...) {
			if n := utf8.RuneCountInString(line); n > MaxLine || n == 0 {
				t.Errorf("%d characters: %s", n, line)
			}
		}
	})
}
