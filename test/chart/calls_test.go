package chart

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/exposition"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// apiServer is what the API server counts.
func (w *world) apiServer(t *testing.T) exposition.Metrics {
	t.Helper()
	metrics, err := exposition.OfAPIServer(t.Context(), w.cluster.Config())
	w.must(t, err)
	return metrics
}

// calls are how often the API server has called each of our webhooks, by its own
// count.
func (w *world) calls(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, s := range w.apiServer(t)["apiserver_admission_webhook_request_total"] {
		if name := s.Labels["name"]; strings.HasSuffix(name, ".freshbind.dev") {
			out[name] += int(s.Value)
		}
	}
	return out
}

// A bind costs one call. What controllers do otherwise costs none: a claim that a
// service account creates, a heartbeat of a member's status or labels.
func TestWhatAWriteCosts(t *testing.T) {
	w := sharedWorld(t)
	// The self-test asks, too.
	w.install(t, set("config.selfTest.enabled=false")...)
	b := w.binds(t)
	cfg, err := w.cluster.User(upstream.User, "system:serviceaccounts", "system:serviceaccounts:"+upstream.Namespace, "system:authenticated", "system:masters")
	w.must(t, err)
	as, err := scenario.Use(cfg, "v1beta1", b.ns.Name)
	w.must(t, err)
	for name, tc := range map[string]struct {
		write func()
		want  map[string]int
	}{
		"a bind":                       {func() { b.bind(t.Context()) }, map[string]int{"bind.freshbind.dev": 1}},
		"a claim of a service account": {func() { w.must(t, as.CreateClaims(t.Context(), scenario.Pool{Name: "nobody"}, "c1")) }, map[string]int{}},
		"a label of a member": {func() {
			w.patch(t, as, b.member, `{"metadata":{"labels":{"seen":"now"}}}`)
		}, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			before := w.calls(t)
			tc.write()
			got := w.calls(t)
			for hook, n := range before {
				got[hook] -= n
			}
			maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
			// A bind that ran out of time is tried again.
			if tc.want["bind.freshbind.dev"] > 0 {
				tc.want["bind.freshbind.dev"] += len(b.failed)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("calls (-want,+got):\n%s", diff)
			}
		})
	}
	if lost := b.lost(); len(lost) > 0 {
		t.Error(b.result())
	}
}
