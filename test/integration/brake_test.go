package integration

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

var namespaceResource = schema.GroupResource{Resource: "namespaces"}

// Audit is the emergency brake: it works at once, also while Freshbind's own
// watches still show what was said before.
func TestAuditBrakesWhateverIsCached(t *testing.T) {
	t.Parallel()
	var proxy *controlplane.Proxy
	w := ownWorld(t, scenario.WorldOptions{Cluster: controlplane.Options{AuditLog: true}, Reach: scenario.Through(&proxy)})
	for name, tc := range map[string]struct {
		// namespace and pool are what they say before.
		namespace, pool string
		brake           func(*stage, scenario.Pool)
	}{
		"by the namespace": {"enforce", "audit", func(s *stage, _ scenario.Pool) { s.label(settings.EnforcementKey, "audit") }},
		"by a pool": {"audit", "enforce", func(s *stage, p scenario.Pool) {
			s.annotate(p, settings.EnforcementKey, "audit")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.namespace(t, nil)
			s.label(settings.EnforcementKey, tc.namespace)
			p := s.rolling(6, settings.MaxUnavailableKey, "1", settings.EnforcementKey, tc.pool)
			s.state(p, "Complete", "")
			held := []schema.GroupResource{namespaceResource, upstream.SandboxWarmPools}
			for _, r := range held {
				proxy.Hold(r.Group, r.Resource)
			}
			deleted, asked := s.countDeletes(), w.readsOf(t, s.Name)
			tc.brake(s, p)
			s.image(p, "sandbox:v2")
			// Each time it is about to act it reads the mode.
			s.eventually("Freshbind has read the mode", func(context.Context) (string, bool) {
				n := w.readsOf(t, s.Name) - asked
				return fmt.Sprintf("%d reads", n), n >= 2
			})
			s.braked(deleted, "while its watches are held")
			for _, r := range held {
				proxy.Release(r.Group, r.Resource)
			}
			s.full(p, "")
			s.braked(deleted, "with its watches released")

			s.label(settings.EnforcementKey, "enforce")
			s.annotate(p, settings.EnforcementKey, "enforce")
			s.full(p, "sandbox:v2")
			s.eventually("deletes seen once the brake is off", func(context.Context) (string, bool) {
				return fmt.Sprint(deleted()), deleted() > 0
			})
		})
	}
}

func (s *stage) braked(deleted func() int, when string) {
	s.t.Helper()
	if n := deleted(); n > 0 {
		s.t.Errorf("%d members were deleted %s", n, when)
	}
	if sum, _ := s.judged(); sum.Hidden > 0 {
		s.t.Errorf("%d members were hidden %s", sum.Hidden, when)
	}
}

// readsOf counts how often Freshbind has read a namespace by itself.
func (w *world) readsOf(t *testing.T, namespace string) int {
	t.Helper()
	n := 0
	for _, q := range w.requests(t, 0) {
		if q.Verb == "get" && q.ObjectRef.Resource == namespaceResource.Resource && q.ObjectRef.Name == namespace {
			n++
		}
	}
	return n
}

func (s *stage) label(key, value string) {
	s.t.Helper()
	patch := marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}})
	_, err := s.kube().CoreV1().Namespaces().Patch(s.t.Context(), s.Name, types.MergePatchType, patch, patchOptions)
	s.must(err)
}
