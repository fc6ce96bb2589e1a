package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
)

// Two replicas; the one that leads is killed in the middle of a rollout. The
// other one proves what it sees, and goes on within the same limits.
func TestAnotherReplicaGoesOnWithARollout(t *testing.T) {
	t.Parallel()
	lead := []string{"--leader-elect=true", "--leader-election-namespace=default"}
	w := ownWorld(t, scenario.WorldOptions{Guard: fixture.Options{Args: lead}})
	s := w.enforced(t)
	p := s.rolling(12, settings.MaxUnavailableKey, "1", settings.MinReadySecondsKey, "1")
	was := s.state(p, "Complete", "")
	w.startSecond(t, lead)
	ready := s.followReady(p)
	s.image(p, "sandbox:v2")
	s.eventually("a rollout under way", func(ctx context.Context) (string, bool) {
		n := 0
		members, err := s.Members(ctx, p.Name)
		s.must(err)
		for _, m := range members {
			if m.Image == "sandbox:v2" {
				n++
			}
		}
		return fmt.Sprintf("%d members of the new template", n), n >= 2
	})
	s.must(w.Guard.Kill())
	killed := time.Now()
	s.state(p, "Complete", was)
	t.Logf("complete %.1f s after the leader was killed; at least %d of 12 members were ready", time.Since(killed).Seconds(), ready.lowest())
	if low := ready.lowest(); low < 11 {
		t.Errorf("only %d members were ready at one time, want 11 or more", low)
	}
	s.full(p, "sandbox:v2")
	s.must(w.Guard.Start(t.Context()))
	s.claim(p, scenario.Names("c", 3)...)
	s.fresh(3)
}
