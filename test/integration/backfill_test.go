package integration

import (
	"testing"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// A pool that was there before anybody said enforce gets its stamps, stays as it
// is, and is kept current from then on.
func TestBackfillWhenANamespaceIsEnforced(t *testing.T) {
	s := sharedWorld(t).namespace(t, nil)
	p := s.pool(scenario.Pool{Replicas: 12, Strategy: scenario.Recreate})
	before := s.uids(p)
	for _, sandbox := range s.list(upstream.Sandboxes) {
		if stamp := sandbox.GetLabels()[settings.StampKey]; stamp != "" {
			t.Errorf("%s has stamp %s although nobody said enforce", sandbox.GetName(), stamp)
		}
	}
	s.enforce()
	s.stampedAll(p, before)
	s.must(s.WaitGuarded(t.Context(), within))
	s.image(p, "sandbox:v2")
	s.claim(p, scenario.Names("c", 3)...)
	s.fresh(3)
}
