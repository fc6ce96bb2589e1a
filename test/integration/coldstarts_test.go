package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// Cold starts are counted by what made them cold.
func TestColdStartsByCause(t *testing.T) {
	w := sharedWorld(t)
	counts := func() map[string]int {
		out := map[string]int{}
		for _, cause := range []string{"ClaimRequires", "PoolEmpty", "Refused"} {
			out[cause] = int(w.metric(t, "freshbind_cold_starts_total", `cause="`+cause+`"`))
		}
		return out
	}
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate}, func(b *builders.Template) { b.EnvPolicy("Allowed") })
	none := s.pool(scenario.Pool{Name: "none", Strategy: scenario.Recreate})
	before := counts()
	since := func() map[string]int {
		out := map[string]int{}
		for cause, n := range counts() {
			if n > before[cause] {
				out[cause] = n - before[cause]
			}
		}
		return out
	}
	s.claim(p, "warm")
	s.must(s.Create(t.Context(), builders.ClaimFrom(s.Claim(p, "own")).Env("", "MODE", "fast").Obj()))
	s.claim(none, "empty")
	s.must(s.WaitClaims(t.Context(), within, "own"))
	want := map[string]int{"ClaimRequires": 1, "PoolEmpty": 1}
	if diff := cmp.Diff(want, since()); diff != "" {
		t.Errorf("cold starts (-want,+got):\n%s", diff)
	}

	// Otherwise Freshbind may delete stale members before anybody tries one.
	s.forbidDeletes(s.full(p, "")[0].Name)
	s.hold(upstream.SandboxTemplates)
	s.image(p, "sandbox:v2")
	s.claim(p, scenario.Names("late", 12)...)
	if got := since()["Refused"]; got == 0 {
		t.Errorf("cold starts are %v: none of a claim that was refused a stale member", since())
	}
}
