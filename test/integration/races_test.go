package integration

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// envRaces is how many claims race, in place of 250.
const envRaces = "RACE_TEST_CLAIMS"

// Under RollingUpdate claims are given the very members that the rollout is
// about to delete, and both want one at the same time: what a claim got is never
// deleted.
func TestClaimsRaceWithTheDeletesOfARollout(t *testing.T) {
	const each = 50
	bursts := 5
	if text := os.Getenv(envRaces); text != "" {
		claims, err := strconv.Atoi(text)
		if err != nil || claims < each {
			t.Fatalf("%s=%q: must be a number of claims, %d or more", envRaces, text, each)
		}
		bursts = claims / each
	}
	s := sharedWorld(t).enforced(t)
	p := s.rolling(each, settings.MaxUnavailableKey, "50%")
	s.state(p, "Complete", "")
	lost := s.watchLosses()
	deletes := s.countDeletes()

	var ended []string
	for burst := range bursts {
		s.image(p, fmt.Sprintf("sandbox:v%d", 2+burst%3))
		claims := scenario.Names(fmt.Sprintf("b%d-", burst), each)
		s.claim(p, claims...)
		if gone := lost(); len(gone) > len(ended) {
			t.Fatalf("after burst %d sandboxes of these claims are gone: %v; ended were: %v", burst, gone, ended)
		}
		s.must(s.DeleteClaims(t.Context(), claims...))
		ended = append(ended, claims...)
	}
	sum, findings := s.judged()
	for _, b := range findings {
		if b.Class != checker.Tolerated && b.Class != checker.Raced {
			t.Errorf("%s", b)
		}
	}
	t.Logf("%s; %d members deleted meanwhile", sum, deletes())
	if sum.Warm < bursts {
		t.Errorf("only %d claims warm: nothing raced", sum.Warm)
	}
}

// watchLosses collects the claims whose sandbox is being deleted or gone.
func (s *stage) watchLosses() func() map[string]bool {
	s.t.Helper()
	var mu sync.Mutex
	lost := map[string]bool{}
	s.observe(s.Resource(upstream.Sandboxes), func(event watch.EventType, sandbox *unstructured.Unstructured) {
		if event != watch.Deleted && sandbox.GetDeletionTimestamp() == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, claim := range agentsandbox.ClaimsOf(sandbox) {
			lost[claim.Name] = true
		}
	})
	return func() map[string]bool {
		mu.Lock()
		defer mu.Unlock()
		out := map[string]bool{}
		for name := range lost {
			out[name] = true
		}
		return out
	}
}
