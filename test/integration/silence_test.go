package integration

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const webhookCalls = "controller_runtime_webhook_requests_total"

// Writes that are neither bind nor birth nor cold start cost no call.
func TestOtherWritesCostNoCall(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate})
	s.claim(p, "c1")
	member := s.full(p, "")[0].Name
	bound, err := s.SandboxOf(t.Context(), "c1")
	s.must(err)
	s.quiet()

	before := s.w.metric(t, webhookCalls)
	kube := s.kube()
	for _, name := range []string{member, bound.GetName()} {
		s.patch(upstream.Sandboxes, name, `{"metadata":{"labels":{"team":"a"}}}`)
		s.patch(upstream.Sandboxes, name, `{"metadata":{"annotations":{"note":"b"}}}`)
		_, err := s.Resource(upstream.Sandboxes).Patch(t.Context(), name, mergePatch, []byte(`{"status":{"service":"s"}}`), patchOptions, "status")
		s.must(err)
		_, err = kube.CoreV1().Pods(s.Name).Patch(t.Context(), name, mergePatch, []byte(`{"metadata":{"labels":{"team":"a"}}}`), patchOptions)
		s.must(err)
		_, err = kube.CoreV1().Pods(s.Name).Patch(t.Context(), name, mergePatch, []byte(`{"status":{"message":"hello"}}`), patchOptions, "status")
		s.must(err)
	}
	s.patch(upstream.SandboxClaims, "c1", `{"metadata":{"labels":{"team":"a"},"annotations":{"note":"b"}}}`)
	_, err = s.Resource(upstream.SandboxClaims).Patch(t.Context(), "c1", mergePatch, []byte(`{"status":{"conditions":[]}}`), patchOptions, "status")
	s.must(err)
	s.must(s.Resource(upstream.Sandboxes).Delete(t.Context(), bound.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	s.must(s.DeleteClaims(t.Context(), "c1"))
	if calls := s.w.metric(t, webhookCalls) - before; calls != 0 {
		t.Errorf("%g webhook calls for writes that Freshbind has nothing to say on", calls)
	}
}

// quiet waits until no webhook has been called for a while: what other tests
// left behind has settled.
func (s *stage) quiet() {
	s.t.Helper()
	last, same := -1.0, 0
	s.eventually("no webhook calls for a second", func(context.Context) (string, bool) {
		now := s.w.metric(s.t, webhookCalls)
		if same++; now != last {
			last, same = now, 0
		}
		return fmt.Sprintf("%g calls so far", now), same >= 20
	})
}
