package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// A controller that does not see what it has created creates it again and again. It is
// told so without a verdict, until that sandbox is gone.
func TestACreateOfWhatExistsCostsNoVerdict(t *testing.T) {
	w := sharedWorld(t)
	s := w.enforced(t)
	none := s.pool(scenario.Pool{Name: "none", Strategy: scenario.Recreate})
	s.claim(none, "c1")
	sandbox, err := s.SandboxOf(t.Context(), "c1")
	s.must(err)

	reads := func() float64 { return w.metric(t, "freshbind_live_reads_total", `resource="sandboxclaims"`) }
	again := builders.MakeColdStart(s.get(upstream.SandboxClaims, "c1"), s.get(upstream.SandboxTemplates, none.Template)).Obj()
	sandboxes := w.controllers(t).Resource(upstream.Sandboxes.WithVersion(s.Version)).Namespace(s.Name)
	const creates = 10
	read := 0.0
	for range creates {
		var err error
		var cost float64
		w.inTime(t, func() {
			before := reads()
			_, err = sandboxes.Create(t.Context(), again, metav1.CreateOptions{})
			cost = reads() - before
		}, stampHooks...)
		read += cost
		if !apierrors.IsAlreadyExists(err) || !strings.Contains(err.Error(), "stamp.freshbind.dev") {
			t.Fatalf("creating it once more: %v; want AlreadyExists, from the webhook that stamps", err)
		}
	}
	if read >= creates {
		t.Errorf("the claim was read %v times for %d creates of what exists", read, creates)
	}

	s.must(s.Resource(upstream.SandboxClaims).Delete(t.Context(), "c1", metav1.DeleteOptions{}))
	s.eventually("claim gone", func(ctx context.Context) (string, bool) {
		_, err := s.Resource(upstream.SandboxClaims).Get(ctx, "c1", metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	if err := s.Resource(upstream.Sandboxes).Delete(t.Context(), sandbox.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	s.eventually("a verdict once more", func(ctx context.Context) (string, bool) {
		_, err := sandboxes.Create(ctx, again, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return fmt.Sprint(err), err != nil && !strings.Contains(err.Error(), "stamp.freshbind.dev")
	})
}
