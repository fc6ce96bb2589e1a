package integration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/audit"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// failures of a claim are enough when its controller waits 20 s for the next
// attempt (workqueue: 5 ms, doubled each time). Claims that nobody wakes are
// ready too late then.
const failures = 13

// catchUp is how soon after Freshbind's return each claim that waited has to be
// ready; FRESHBIND_TEST_CATCHUP gives slow machines more.
func catchUp(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("FRESHBIND_TEST_CATCHUP")
	if text == "" {
		return 10 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("FRESHBIND_TEST_CATCHUP=%q is not a duration such as 10s: %v", text, err)
	}
	return d
}

// stopGuard stops Freshbind, its webhooks still in force, until the test ends
// or the returned function is called.
func (s *stage) stopGuard() (start func()) {
	s.t.Helper()
	s.must(s.w.Guard.Stop())
	stopped := true
	start = func() {
		s.t.Helper()
		if stopped {
			stopped = false
			s.must(s.w.Guard.Start(context.WithoutCancel(s.t.Context())))
		}
	}
	s.t.Cleanup(start)
	return start
}

// With Freshbind gone, binds and cold starts wait; everything else goes on.
// Once it is back, what waited is done at once, though agent-sandbox's own
// backoff has grown meanwhile.
func TestWhileFreshbindIsDown(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	ctx := t.Context()
	kept := s.pool(scenario.Pool{Name: "kept", Replicas: 4, Strategy: scenario.Recreate})
	stale := s.pool(scenario.Pool{Name: "stale", Replicas: 3, Strategy: scenario.OnReplenish})
	s.patch(upstream.SandboxWarmPools, stale.Name, `{"metadata":{"annotations":{"freshbind.dev/rollout-strategy":"Recreate"}}}`)
	empty := s.pool(scenario.Pool{Name: "empty", Replicas: 0, Strategy: scenario.Recreate})
	doomed := s.pool(scenario.Pool{Name: "doomed", Replicas: 1})
	s.claim(kept, "earlier")
	s.full(kept, "")

	start := s.stopGuard()
	s.image(stale, "sandbox:v2")
	s.image(empty, "sandbox:v2")
	waiting := map[string]scenario.Pool{"kept1": kept, "kept2": kept, "stale1": stale, "stale2": stale, "stale3": stale, "empty1": empty}
	names := slices.Sorted(maps.Keys(waiting))
	for _, name := range names {
		s.must(s.CreateClaims(ctx, waiting[name], name))
	}
	s.goesOn(kept, doomed)
	s.untilFailed(failures, names...)
	for _, name := range names {
		if sandbox, err := s.SandboxOf(ctx, name); err == nil {
			t.Errorf("claim %s got sandbox %s while nobody could judge", name, sandbox.GetName())
		}
	}

	start()
	limit, back := catchUp(t), time.Now()
	s.must(s.WaitClaims(ctx, limit, names...))
	t.Logf("all %d claims ready %.2f s after Freshbind was back (limit %s)", len(names), time.Since(back).Seconds(), limit)
	if sum := s.fresh(1 + len(names)); sum.Classes[audit.Stale] > 0 {
		t.Errorf("%d stale binds", sum.Classes[audit.Stale])
	}
	for _, name := range []string{"stale1", "stale2", "stale3", "empty1"} {
		sandbox, err := s.SandboxOf(ctx, name)
		s.must(err)
		if image := scenario.ImageOf(sandbox); image != "sandbox:v2" {
			t.Errorf("claim %s runs %s, want sandbox:v2", name, image)
		}
	}
}

// goesOn makes writes that are no bind and no cold start.
func (s *stage) goesOn(kept, doomed scenario.Pool) {
	s.t.Helper()
	member := s.full(kept, "")[0]
	s.patch(upstream.Sandboxes, member.Name, `{"metadata":{"labels":{"team":"a"}}}`)
	s.patch(upstream.SandboxClaims, "earlier", `{"metadata":{"annotations":{"note":"b"}}}`)
	s.must(s.DeleteClaims(s.t.Context(), "earlier"))
	s.gone(upstream.SandboxClaims, "earlier")
	s.must(s.Resource(upstream.SandboxWarmPools).Delete(s.t.Context(), doomed.Name, metav1.DeleteOptions{}))
	s.gone(upstream.SandboxWarmPools, doomed.Name)

	kept.Replicas--
	s.patch(upstream.SandboxWarmPools, kept.Name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, kept.Replicas))
	s.full(kept, "")
	// Births: the pool's members are made, if unstamped, with nobody to ask.
	s.pool(scenario.Pool{Name: "born", Replicas: 2, Strategy: scenario.Recreate})
}

func (s *stage) gone(r schema.GroupResource, name string) {
	s.t.Helper()
	s.eventually(r.Resource+" "+name+" gone", func(ctx context.Context) (string, bool) {
		_, err := s.Resource(r).Get(ctx, name, getOptions)
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

// untilFailed waits until agent-sandbox has failed so often for each of these
// claims, by its own log: nothing in the cluster tells.
func (s *stage) untilFailed(times int, claims ...string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d failures of each of %v", times, claims), func(context.Context) (string, bool) {
		log, err := os.ReadFile(s.w.Controllers.LogPath())
		if err != nil {
			return err.Error(), false
		}
		failed := map[string]int{}
		for line := range strings.Lines(string(log)) {
			if !strings.Contains(line, "Reconciler error") || !strings.Contains(line, s.Name) {
				continue
			}
			for _, claim := range claims {
				if strings.Contains(line, `"`+claim+`"`) {
					failed[claim]++
				}
			}
		}
		for _, claim := range claims {
			if failed[claim] < times {
				return fmt.Sprint(failed), false
			}
		}
		return fmt.Sprint(failed), true
	})
}
