package routestest_test

import (
	"errors"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/routes/routestest"
	"github.com/freshbind/freshbind/test/kruisegateway"
)

// TestDoublesFail shows that each named test finds what it is for: tables that
// do what OpenKruise Agents does fail just the tests of their weaknesses.
func TestDoublesFail(t *testing.T) {
	for name, tc := range map[string]struct {
		table routestest.NewTable
		want  []string
	}{
		"openkruise v0.2.0 to v0.3.0": {
			table: func(routestest.Env) routestest.Table { return &releaseTable{} },
			want: []string{
				"address-reused", "clock-ahead", "etcd-restored", "forged-version", "id-copied", "id-takeover-ends", "incomplete-view-after-restart",
				"late-delete-of-earlier-sandbox", "late-event-after-delete", "late-event-long-after-delete", "names-look-alike",
				"pod-disowned", "push-between-last-seen-and-deletion", "push-outside-scope",
				"recycled-sandbox-old-id", "shutdown-time-passed", "stale-push-after-restart", "status-update-after-dead-push",
				"terminating-pod", "updates-lost",
			},
		},
		"openkruise head": {
			table: func(env routestest.Env) routestest.Table { return newHeadTable(env) },
			want: []string{
				"address-reused", "clock-ahead", "etcd-restored", "forged-version", "id-copied", "id-takeover-ends", "late-event-long-after-delete",
				"names-look-alike", "pod-disowned", "push-between-last-seen-and-deletion", "push-outside-scope", "recycled-sandbox-old-id", "shutdown-time-passed",
				"stale-push-after-restart", "status-update-after-dead-push", "terminating-pod", "updates-lost",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			failed := routestest.Failures(tc.table)
			got := slices.Sorted(maps.Keys(failed))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("failed tests (-want +got):\n%s", diff)
			}
			for _, name := range got {
				t.Log(failed[name])
			}
			var story *routestest.HistoryError
			_, err := routestest.Histories(tc.table, routestest.HistoryOptions{Steps: 50_000, Seed: 1})
			if !errors.As(err, &story) {
				t.Fatalf("random histories: got %v, want a failure", err)
			}
			if len(story.Story) > 12 {
				t.Errorf("the story has %d lines, want it shorter", len(story.Story))
			}
			t.Log(story)
		})
	}
}

// TestServingNothingFails shows that it is no way out to serve nothing.
func TestServingNothingFails(t *testing.T) {
	failed := routestest.Failures(func(routestest.Env) routestest.Table { return servesNothing{} })
	if len(failed) != len(routestest.Cases()) {
		t.Errorf("got %d failures, want all %d", len(failed), len(routestest.Cases()))
	}
}

type servesNothing struct{}

func (servesNothing) Apply(routestest.Event)       {}
func (servesNothing) Refresh(routestest.Message)   {}
func (servesNothing) Lookup(string) (string, bool) { return "", false }
func (servesNothing) Restart()                     {}

type kruiseRoute struct {
	ip, state, version string
}

func stateOf(s *routestest.Sandbox) string {
	switch {
	case s.PodIP == "":
		return "creating"
	case s.NotReady:
		return "dead"
	}
	return s.State
}

func version(s *routestest.Sandbox) string { return strconv.FormatUint(s.Version, 10) }

func compare(a, b string) int {
	x, _ := new(big.Int).SetString(a, 10)
	y, _ := new(big.Int).SetString(b, 10)
	return x.Cmp(y)
}

// releaseTable is the gateway's registry in OpenKruise Agents v0.2.0 to v0.3.0:
// routes by ID, updates in the order of versions, deletes in none.
type releaseTable struct{ routes map[string]kruiseRoute }

func (r *releaseTable) Restart() { r.routes = nil }

func (r *releaseTable) update(id string, next kruiseRoute) {
	if old, ok := r.routes[id]; ok && compare(next.version, old.version) < 0 {
		return
	}
	if r.routes == nil {
		r.routes = map[string]kruiseRoute{}
	}
	r.routes[id] = next
}

func (r *releaseTable) Apply(e routestest.Event) {
	if e.Sandbox == nil {
		return
	}
	id := e.Sandbox.ID
	if id == "" {
		id = e.Sandbox.Namespace + "--" + e.Sandbox.Name
	}
	if e.Type != routestest.Changed {
		delete(r.routes, id)
		return
	}
	r.update(id, kruiseRoute{ip: e.Sandbox.PodIP, state: stateOf(e.Sandbox), version: version(e.Sandbox)})
}

func (r *releaseTable) Refresh(m routestest.Message) {
	if m.State != "running" {
		delete(r.routes, m.ID)
		return
	}
	r.update(m.ID, kruiseRoute{ip: m.IP, state: m.State, version: m.Version})
}

func (r *releaseTable) Lookup(id string) (string, bool) {
	got, ok := r.routes[id]
	return got.ip, ok && got.state == "running"
}

// headTable is OpenKruise Agents' gateway after v0.3.0, which answers once its
// informer has listed.
type headTable struct {
	env   routestest.Env
	ready bool
	store *kruisegateway.Store
}

func newHeadTable(env routestest.Env) *headTable {
	h := &headTable{env: env}
	h.Restart()
	return h
}

func (h *headTable) Restart() {
	h.ready, h.store = false, kruisegateway.NewStore(h.env.Clock.Now)
}

func (h *headTable) Apply(e routestest.Event) {
	if e.Type == routestest.Listed {
		h.ready = true
	}
	if e.Sandbox == nil {
		return
	}
	r := kruisegateway.Route{Namespace: e.Sandbox.Namespace, Name: e.Sandbox.Name, ID: e.Sandbox.ID, IP: e.Sandbox.PodIP, State: stateOf(e.Sandbox)}
	if r.ID == "" {
		r.ID = r.Namespace + "--" + r.Name
	}
	if e.Type != routestest.Vanished {
		r.ResourceVersion = version(e.Sandbox)
	}
	if e.Type == routestest.Changed {
		h.store.Upsert(r)
		return
	}
	h.store.Delete(r)
}

func (h *headTable) Refresh(m routestest.Message) {
	h.store.Refresh(kruisegateway.Route{Namespace: m.Namespace, Name: m.Name, ID: m.ID, IP: m.IP, State: m.State, ResourceVersion: m.Version})
}

func (h *headTable) Lookup(id string) (string, bool) {
	ip, ok := h.store.Lookup(id)
	return ip, ok && h.ready
}
