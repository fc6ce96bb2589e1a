package chart

import (
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

var callLine = regexp.MustCompile(`(?m)^apiserver_admission_webhook_request_total\{(.*)\} (\S+)$`)

// calls are how often the API server has called each of our webhooks, by its own
// count.
func (w *world) calls(t *testing.T) map[string]int {
	t.Helper()
	text, err := w.clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	w.must(t, err)
	out := map[string]int{}
	for _, line := range callLine.FindAllStringSubmatch(string(text), -1) {
		name := regexp.MustCompile(`name="([^"]*)"`).FindStringSubmatch(line[1])
		if name == nil || !strings.HasSuffix(name[1], ".freshbind.dev") {
			continue
		}
		n, err := strconv.Atoi(line[2])
		w.must(t, err)
		out[name[1]] += n
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
