package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/controllers/pools"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// Freshbind finds a store full of members from before it was asked to act, much
// to do among them, and its first lists come late, in part, or not at all. Until
// they are whole it does nothing; then it catches up with everything.
func TestNothingIsDoneBeforeTheViewIsWhole(t *testing.T) {
	t.Parallel()
	var proxy *controlplane.Proxy
	w := ownWorld(t, scenario.WorldOptions{Cluster: controlplane.Options{AuditLog: true}, Reach: scenario.Through(&proxy)})
	for name, tc := range map[string]blindness{
		"members": {upstream.Sandboxes, everybody, controlplane.ListsCut},
		// Two caches hold templates: that of their history, and that of pools.
		"templates of pools": {upstream.SandboxTemplates, forPools, controlplane.ListsRefused},
		"all templates":      {upstream.SandboxTemplates, everybody, controlplane.ListsRefused},
	} {
		t.Run(name, func(t *testing.T) { w.startBlind(t, proxy, tc) })
	}
	w.firstListsConsistent(t, 0)
}

// blindness is what Freshbind cannot list, and what becomes of its lists after
// they were held for a while.
type blindness struct {
	resource schema.GroupResource
	filter   func(*http.Request) bool
	then     controlplane.Lists
}

func everybody(*http.Request) bool { return true }

// forPools: the order in which caches are filled is nobody's.
func forPools(r *http.Request) bool { return strings.HasSuffix(r.UserAgent(), pools.UserAgentSuffix) }

func (w *world) startBlind(t *testing.T, proxy *controlplane.Proxy, b blindness) {
	s := w.namespace(t, nil)
	fresh := s.pool(scenario.Pool{Name: "fresh", Replicas: 4, Strategy: scenario.Recreate})
	kept := s.uids(fresh)
	recreated := s.pool(scenario.Pool{Name: "recreated", Replicas: 6, Strategy: scenario.OnReplenish})
	s.annotate(recreated, settings.StrategyKey, "Recreate")
	rolled := s.pool(scenario.Pool{Name: "rolled", Replicas: 6, Strategy: scenario.OnReplenish})
	s.annotate(rolled, settings.StrategyKey, "RollingUpdate", settings.MaxUnavailableKey, "50%")
	s.must(w.Guard.Stop())
	s.enforce()
	s.image(recreated, "sandbox:v2")
	s.image(rolled, "sandbox:v2")

	lists := func(l controlplane.Lists) { proxy.SetLists(b.resource.Group, b.resource.Resource, l, b.filter) }
	t.Cleanup(func() { lists(controlplane.ListsWhole) })
	before := w.wantedAll(t, 0, b.resource, "watch")
	lists(controlplane.ListsHeld)
	s.must(w.Guard.Launch())
	s.untouched("held", b.resource, "watch", before+1)

	// client-go asks for a list when it cannot have a watch that begins with one.
	verb := map[controlplane.Lists]string{controlplane.ListsCut: "watch", controlplane.ListsRefused: "list"}[b.then]
	before = w.wantedAll(t, 0, b.resource, verb)
	lists(b.then)
	s.untouched(string(b.then), b.resource, verb, before+1)

	lists(controlplane.ListsWhole)
	s.must(w.Guard.WaitReady(t.Context(), within))
	s.stampedAll(fresh, kept)
	for _, p := range []scenario.Pool{recreated, rolled} {
		s.full(p, "sandbox:v2")
		s.claim(p, p.Name)
	}
	s.claim(fresh, fresh.Name)
	s.fresh(3)
}

// untouched waits until Freshbind has asked for all of a resource so many times,
// and a while longer, in which it does nothing to the members. Their own controller may
// still delete what it has created twice.
func (s *stage) untouched(lists string, r schema.GroupResource, verb string, asked int) {
	s.t.Helper()
	still := 0
	s.eventually("lists that are "+lists+", asked for", func(context.Context) (string, bool) {
		n := s.w.wantedAll(s.t, 0, r, verb)
		if n >= asked {
			still++
		}
		return fmt.Sprintf("%d requests, waiting for %d", n, asked), still >= 20
	})
	for _, write := range s.w.writes(s.t, 0, s.Name, time.Time{}) {
		s.t.Errorf("lists are %s, and Freshbind wrote: %s", lists, write)
	}
}

// wantedAll counts Freshbind's requests for all objects of a resource.
func (w *world) wantedAll(t *testing.T, server int, r schema.GroupResource, verb string) int {
	t.Helper()
	n := 0
	for _, q := range w.requests(t, server) {
		if q.Verb == verb && q.ObjectRef.Resource == r.Resource && q.ObjectRef.Name == "" {
			n++
		}
	}
	return n
}

// firstListsConsistent checks that Freshbind has asked an API server for nothing
// that may be older than etcd: no list, and no watch that begins with one, of any
// version (kubernetes#59848).
func (w *world) firstListsConsistent(t *testing.T, server int) {
	t.Helper()
	n := 0
	for _, q := range w.requests(t, server) {
		uri, err := url.Parse(q.RequestURI)
		if err != nil {
			t.Fatal(err)
		}
		query := uri.Query()
		// Lists of one namespace fill no cache: they are for advice.
		if q.ObjectRef.Namespace != "" || q.Verb != "list" && query.Get("sendInitialEvents") != "true" {
			continue
		}
		n++
		if query.Get("resourceVersion") == "0" {
			t.Errorf("Freshbind asked for any version: %s", q.RequestURI)
		}
	}
	if n == 0 {
		t.Error("Freshbind has asked for no list: this test has shown nothing")
	}
}

// uids are those of a pool's members.
func (s *stage) uids(p scenario.Pool) map[types.UID]bool {
	s.t.Helper()
	out := map[types.UID]bool{}
	for _, m := range s.full(p, "") {
		out[m.UID] = true
	}
	return out
}

// enforce has Freshbind act in a namespace that was there before.
func (s *stage) enforce() {
	s.t.Helper()
	_, err := s.kube().CoreV1().Namespaces().Patch(s.t.Context(), s.Name, types.MergePatchType,
		marshal(map[string]any{"metadata": map[string]any{"labels": scenario.Enforce()}}), metav1.PatchOptions{})
	s.must(err)
}

// stampedAll waits until all members of a pool and their Pods have a stamp, and
// checks that the members are those that there were.
func (s *stage) stampedAll(p scenario.Pool, before map[types.UID]bool) {
	s.t.Helper()
	want := s.printedHash(s.get(upstream.SandboxTemplates, p.Template))
	s.eventually("stamps on all members and pods", func(ctx context.Context) (string, bool) {
		n := 0
		for _, sandbox := range s.list(upstream.Sandboxes) {
			if sandbox.GetLabels()[settings.StampKey] == want && before[sandbox.GetUID()] {
				n++
			}
		}
		pods, err := s.kube().CoreV1().Pods(s.Name).List(ctx, metav1.ListOptions{LabelSelector: settings.StampKey + "=" + want})
		s.must(err)
		return fmt.Sprintf("%d members, %d pods", n, len(pods.Items)), n == p.Replicas && len(pods.Items) >= p.Replicas
	})
	for _, m := range s.full(p, "") {
		if !before[m.UID] {
			s.t.Errorf("member %s is new: the pool was to stay as it is", m.Name)
		}
	}
}
