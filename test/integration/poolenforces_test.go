package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// Where a pool enforces in a namespace that audits, what cannot be decided waits, as
// it does where the namespace enforces.
func TestUndecidedWaitsWhereAPoolEnforces(t *testing.T) {
	t.Parallel()
	var proxy *controlplane.Proxy
	w := ownWorld(t, scenario.WorldOptions{Reach: scenario.Through(&proxy)})
	t.Run("the template cannot be read", func(t *testing.T) {
		s, p := w.auditedPool(t)
		s.annotate(p, settings.EnforcementKey, "enforce")
		s.state(p, "Complete", "")
		s.waitsWhile(p, proxy, func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/"+s.Name+"/"+upstream.SandboxTemplates.Resource+"/")
		})
		s.must(s.WaitClaims(t.Context(), within, "c1"))
		s.fresh(1)
	})
	// Policies find a sandbox by a label that only Freshbind writes. Until it is there
	// a used sandbox could be given back to its pool.
	t.Run("no policy holds for the member", func(t *testing.T) {
		s, p := w.auditedPool(t)
		for _, m := range s.full(p, "") {
			if label, has := s.get(upstream.Sandboxes, m.Name).GetLabels()[settings.EnforcementKey]; has {
				t.Fatalf("%s says %q, though nobody enforces: this test shows nothing", m.Name, label)
			}
		}
		s.waitsWhile(p, proxy, func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/"+s.Name+"/"+upstream.Sandboxes.Resource+"/")
		}, settings.EnforcementKey, "enforce")
		s.must(s.WaitClaims(t.Context(), within, "c1"))
		s.fresh(1)
		s.neverGoesBack(p, "c1")
	})
}

// auditedPool is a full pool in a namespace that audits.
func (w *world) auditedPool(t *testing.T) (*stage, scenario.Pool) {
	s := w.namespace(t, nil)
	s.label(settings.EnforcementKey, "audit")
	p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate})
	s.full(p, "")
	return s, p
}

// waitsWhile has a claim c1 made while Freshbind's requests of this kind get no answer,
// and after the pool has said this; it shows that the claim waits.
func (s *stage) waitsWhile(p scenario.Pool, proxy *controlplane.Proxy, held func(*http.Request) bool, says ...string) {
	s.t.Helper()
	undecided := func(mode string) float64 {
		return s.w.metric(s.t, "freshbind_bind_verdicts_total", `verdict="error"`, `mode="`+mode+`"`)
	}
	enforced, audited := undecided("enforce"), undecided("audit")
	proxy.HoldRequests(held)
	defer proxy.HoldRequests(nil)
	if len(says) > 0 {
		s.annotate(p, says...)
	}
	s.must(s.CreateClaims(s.t.Context(), p, "c1"))
	s.eventually("binds that cannot be decided", func(context.Context) (string, bool) {
		n := undecided("enforce") - enforced
		return fmt.Sprintf("%g of them", n), n >= 2
	})
	if sum, _ := s.judged(); sum.Ready > 0 || undecided("audit") > audited {
		s.t.Errorf("%d claims are ready, %g verdicts audited", sum.Ready, undecided("audit")-audited)
	}
}
