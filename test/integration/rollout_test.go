package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// rolling makes a pool under RollingUpdate by annotation.
func (s *stage) rolling(replicas int, annotations ...string) scenario.Pool {
	s.t.Helper()
	p := s.pool(scenario.Pool{Replicas: replicas, Strategy: scenario.OnReplenish})
	s.annotate(p, append(annotations, settings.StrategyKey, "RollingUpdate")...)
	return p
}

// annotate sets annotations of a pool, given as keys and values.
func (s *stage) annotate(p scenario.Pool, pairs ...string) {
	s.t.Helper()
	set := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	s.patch(upstream.SandboxWarmPools, p.Name, string(marshal(map[string]any{"metadata": map[string]any{"annotations": set}})))
}

// state waits for the outcome of the rollout of a revision other than was.
func (s *stage) state(p scenario.Pool, state, was string) (revision string) {
	s.t.Helper()
	s.eventually("rollout "+state, func(context.Context) (string, bool) {
		annotations := s.get(upstream.SandboxWarmPools, p.Name).GetAnnotations()
		revision = annotations[settings.RolloutRevisionKey]
		return annotations[settings.RolloutStatusKey], annotations[settings.RolloutStateKey] == state && revision != was
	})
	return revision
}

// readiness follows how many members of a pool are ready and not being deleted.
type readiness struct {
	mu    sync.Mutex
	ready map[types.UID]bool
	low   int
}

// followReady starts with the members that are there.
func (s *stage) followReady(p scenario.Pool) *readiness {
	s.t.Helper()
	members := s.full(p, "")
	f := &readiness{ready: map[types.UID]bool{}, low: len(members)}
	for _, m := range members {
		f.ready[m.UID] = true
	}
	s.observe(s.Resource(upstream.Sandboxes), f.see)
	return f
}

func (f *readiness) see(event watch.EventType, sandbox *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pool := scenario.PoolOf(sandbox)
	if event == watch.Deleted || sandbox.GetDeletionTimestamp() != nil || pool == "" || agentsandbox.ReadySince(sandbox).IsZero() {
		delete(f.ready, sandbox.GetUID())
	} else {
		f.ready[sandbox.GetUID()] = true
	}
	f.low = min(f.low, len(f.ready))
}

func (f *readiness) lowest() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.low
}

// eachRollout plays a test beside the releases whose pools roll differently.
func eachRollout(t *testing.T, play func(t *testing.T, s *stage)) {
	t.Helper()
	for _, version := range []string{release, "v0.5.6", "v0.4.6"} {
		t.Run(version, func(t *testing.T) {
			play(t, releaseWorld(t, version).enforced(t))
		})
	}
}

// At every instant at least as many members are ready as the pool asks for, and
// in the end all are of the new template.
func TestRollingUpdateKeepsAPoolServing(t *testing.T) {
	eachRollout(t, keepsServing)
}

func keepsServing(t *testing.T, s *stage) {
	p := s.rolling(20, settings.MaxUnavailableKey, "25%")
	was := s.state(p, "Complete", "")
	ready := s.followReady(p)

	start := time.Now()
	s.image(p, "sandbox:v2")
	s.state(p, "Complete", was)
	t.Logf("20 members rolled, 5 at a time, in %.1f s; at least %d were ready", time.Since(start).Seconds(), ready.lowest())
	if low := ready.lowest(); low < 15 {
		t.Errorf("only %d members were ready at one time, want 15 or more", low)
	}
	for _, m := range s.full(p, "sandbox:v2") {
		if !m.Shown {
			t.Errorf("member %s is hidden after the rollout", m.Name)
		}
	}
	if admit := s.get(upstream.SandboxWarmPools, p.Name).GetAnnotations()[settings.AdmitKey]; admit != "" {
		t.Errorf("%s is %q after the rollout, want none", settings.AdmitKey, admit)
	}
	s.atRest(p)
	s.claim(p, scenario.Names("c", 5)...)
	if sum := s.fresh(5); sum.Warm != 5 {
		t.Errorf("%d claims warm, want 5: %s", sum.Warm, sum)
	}
}

// A template whose members never get ready empties no pool: the rollout stops,
// and what was there before is claimed, one by one. A rollback makes all of it
// fresh again.
func TestARolloutThatCannotStart(t *testing.T) {
	eachRollout(t, cannotStart)
}

func cannotStart(t *testing.T, s *stage) {
	p := s.rolling(12, settings.MaxUnavailableKey, "25%", settings.ProgressDeadlineKey, "3s")
	good := s.state(p, "Complete", "")

	s.patch(upstream.SandboxTemplates, p.Template, `{"spec":{"podTemplate":{"spec":{"schedulerName":"nobody"}}}}`)
	// Claims that come now are refused what is stale, and cold-start past it: none
	// of that may cost the pool a member.
	early := scenario.Names("early", 4)
	s.must(s.CreateClaims(t.Context(), p, early...))
	s.state(p, "Failed", good)
	s.must(s.DeleteClaims(t.Context(), early...))
	// Those that were hidden are shown again one by one.
	var before checker.Summary
	var old int
	s.eventually("9 older members serve, but for those that claims were given", func(ctx context.Context) (string, bool) {
		before, _ = s.judged()
		members, err := s.Members(ctx, p.Name)
		s.must(err)
		old = 0
		for _, m := range members {
			if m.Ready && m.Shown {
				old++
			}
		}
		return fmt.Sprintf("%d serve of %v; %s", old, members, before), old == 9-before.Classes[checker.Tolerated]
	})
	for i := range old {
		s.claim(p, fmt.Sprintf("c%d", i))
	}
	sum, findings := s.judged()
	if sum.Warm-before.Warm != old || sum.Classes[checker.Tolerated]-before.Classes[checker.Tolerated] != old {
		t.Errorf("claims during a failed rollout: %s, before them %s, want %d more warm and tolerated: %v", sum, before, old, findings)
	}

	s.patch(upstream.SandboxTemplates, p.Template, `{"spec":{"podTemplate":{"spec":{"schedulerName":null}}}}`)
	s.eventually("rolled back", func(context.Context) (string, bool) {
		annotations := s.get(upstream.SandboxWarmPools, p.Name).GetAnnotations()
		return annotations[settings.RolloutStatusKey], annotations[settings.RolloutStateKey] == "Complete" && annotations[settings.RolloutRevisionKey] == good
	})
	s.atRest(p)
	s.claim(p, scenario.Names("d", 12)...)
	if after, _ := s.judged(); after.Warm != sum.Warm+12 {
		t.Errorf("after the rollback: %s, want all of 12 warm", after)
	}
}

// Secrets rotate and tags are built anew under an unchanged template.
func TestRestart(t *testing.T) { eachRollout(t, restarts) }

func restarts(t *testing.T, s *stage) {
	p := s.pool(scenario.Pool{Replicas: 4, Strategy: scenario.Recreate})
	revision := s.state(p, "Complete", "")
	before := map[types.UID]bool{}
	for _, m := range s.full(p, "") {
		before[m.UID] = true
	}
	s.annotate(p, settings.PausedKey, "true", settings.RestartedAtKey, time.Now().UTC().Format(time.RFC3339))
	s.state(p, "Paused", "")
	left := func() int {
		members, err := s.Members(t.Context(), p.Name)
		s.must(err)
		n := 0
		for _, m := range members {
			if before[m.UID] {
				n++
			}
		}
		return n
	}
	if n := left(); n != 4 {
		t.Errorf("%d of 4 members left while the pool is paused", n)
	}
	s.annotate(p, settings.PausedKey, "false")
	s.eventually("every member replaced", func(context.Context) (string, bool) { return fmt.Sprint(left()), left() == 0 })
	s.full(p, "")
	if got := s.state(p, "Complete", ""); got != revision {
		t.Errorf("revision %s, want %s as before", got, revision)
	}
	// A restart that lies ahead makes no member stale.
	s.annotate(p, settings.RestartedAtKey, "2100-01-01T00:00:00Z")
	s.claim(p, "c1")
	if sum := s.fresh(1); sum.Warm != 1 {
		t.Errorf("%d claims have a member, want 1", sum.Warm)
	}
}
