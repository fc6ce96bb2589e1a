package integration

import (
	"testing"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

// Those whose templates never change refer to another one: that rolls as an edit
// does, and a pause holds it.
func TestASwitchOfTemplatesRolls(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.rolling(6, settings.MaxUnavailableKey, "1", settings.PausedKey, "true")
	first := s.state(p, "Complete", "")
	s.must(s.Create(t.Context(), builders.MakeTemplate(s.Name, "python-2").APIVersion(s.Version).Image("sandbox:v2").Obj()))
	deleted, ready := s.countDeletes(), s.followReady(p)
	s.patch(upstream.SandboxWarmPools, p.Name, `{"spec":{"sandboxTemplateRef":{"name":"python-2"}}}`)
	p.Template = "python-2"
	s.state(p, "Paused", first)
	// A claim meanwhile gets a sandbox of the new template: it waits for a cold start.
	s.claim(p, "paused")
	if n := deleted(); n > 0 {
		t.Errorf("%d members were deleted while the pool is paused", n)
	}
	s.annotate(p, settings.PausedKey, "false")
	s.state(p, "Complete", first)
	s.full(p, "sandbox:v2")
	if low := ready.lowest(); low < p.Replicas-1 {
		t.Errorf("%d members were ready at the worst moment, want %d", low, p.Replicas-1)
	}
	s.claim(p, "rolled")
	s.fresh(2)
}
