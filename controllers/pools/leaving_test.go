package pools

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// placed are nodes with Pods on them.
type placed struct {
	nodes   []string
	version int
}

func (p *placed) Nodes(known int) (nodes []string, version int) {
	if known == p.version {
		return nil, known
	}
	return p.nodes, p.version
}

func tainted(name string, effects ...any) *unstructured.Unstructured {
	u := object(nodeKind)
	u.SetName(name)
	u.SetUID("uid")
	var taints []any
	for _, effect := range effects {
		taints = append(taints, map[string]any{"key": "example.com/away", "effect": effect})
	}
	u.Object["spec"] = map[string]any{"taints": taints}
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	return u
}

func TestLeavingNodes(t *testing.T) {
	store := &placed{nodes: []string{"a", "b"}}
	nodes, reads := map[string]*unstructured.Unstructured{"a": tainted("a", "NoExecute"), "b": tainted("b"), "c": tainted("c", "NoExecute")}, 0
	l := &leavingNodes{store: store, known: -1, node: func(_ context.Context, name string) (*unstructured.Unstructured, error) {
		reads++
		return nodes[name], nil
	}}
	saw := func(name string) { l.saw(name, placement.NodeState(nodes[name])) }
	for i, tc := range []struct {
		name   string
		change func()
		want   []string
		empty  []string
		reads  int
	}{
		{"at first all are looked at that have Pods", func() {}, []string{"a"}, nil, 2},
		{"nothing has changed", func() {}, []string{"a"}, nil, 2},
		{"a node says it is alive", func() { saw("a") }, []string{"a"}, nil, 2},
		{"a node is to go", func() {
			nodes["b"] = tainted("b", "NoExecute")
			saw("b")
		}, []string{"a", "b"}, nil, 4},
		{"it has another taint", func() {
			nodes["b"] = tainted("b", "NoExecute", "NoExecute")
			saw("b")
		}, []string{"a", "b"}, nil, 6},
		{"a Pod is on another node", func() { store.nodes, store.version = append(store.nodes, "c"), 1 }, []string{"a", "b", "c"}, nil, 9},
		{"a node is gone", func() {
			delete(nodes, "a")
			saw("a")
		}, []string{"a", "b", "c"}, nil, 12},
		{"a node comes back", func() {
			nodes["a"] = tainted("a")
			saw("a")
		}, []string{"b", "c"}, nil, 15},
		{"it is cordoned", func() {
			nodes["a"].Object["spec"] = map[string]any{"unschedulable": true}
			saw("a")
		}, []string{"b", "c"}, []string{"a"}, 18},
		{"it says it is alive", func() { saw("a") }, []string{"b", "c"}, []string{"a"}, 18},
		{"an autoscaler empties it", func() {
			nodes["a"].Object["spec"].(map[string]any)["taints"] = []any{map[string]any{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}}
			saw("a")
		}, []string{"b", "c"}, []string{"a"}, 21},
		{"it is not any more", func() {
			nodes["a"] = tainted("a")
			saw("a")
		}, []string{"b", "c"}, nil, 24},
	} {
		tc.change()
		worse, err := l.now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(worse.leaving))); diff != "" || reads != tc.reads {
			t.Errorf("step %d, %s: %d reads, want %d; leaving (-want,+got):\n%s", i, tc.name, reads, tc.reads, diff)
		}
		if diff := cmp.Diff(tc.empty, slices.Sorted(maps.Keys(worse.cordoned))); diff != "" {
			t.Errorf("step %d, %s: to be empty (-want,+got):\n%s", i, tc.name, diff)
		}
	}
}

// unevictable are objects of a platform whose Pods are not evicted.
type unevictable struct{ agentsandbox.Objects }

func (u unevictable) DescribeMember(m *unstructured.Unstructured) platform.Description {
	d := u.Objects.DescribeMember(m)
	d.Unevictable = m.GetName() != "evictable"
	return d
}

// Whoever empties a node is not held up by idle members whose Pods are not evicted: they
// are replaced, by as many at a time as may be missing.
func TestMembersAreReplacedOnCordonedNodes(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(6).Annotation(settings.MaxUnavailableKey, "2").Obj()
	on := func(member *unstructured.Unstructured, node string, tolerations ...any) *unstructured.Unstructured {
		pod := builders.MakePod(member).Stored(node)
		if tolerations != nil {
			pod.Set(tolerations, "spec", "tolerations")
		}
		return pod.Obj()
	}
	member := func(name string, age time.Duration) *unstructured.Unstructured {
		return of(pool, v1, name).Created(now.Add(-age)).Obj()
	}
	a, b, c := member("a", 5*time.Hour), member("b", 4*time.Hour), member("c", 3*time.Hour)
	evictable, tolerates, elsewhere := member("evictable", 2*time.Hour), member("tolerates", 2*time.Hour), member("elsewhere", 2*time.Hour)
	node := nodeNamed("node-1", false)
	node.Object["spec"] = map[string]any{"unschedulable": true}
	r := newHarness(t, nil, pool, v1, node, nodeNamed("node-2", false), a, b, c, evictable, tolerates, elsewhere)
	recorder := events.NewFakeRecorder(10)
	r.events = recorder
	put, drop := storeBy(t, r, platform.NewReducer(unevictable{}))
	for _, m := range []*unstructured.Unstructured{a, b, c, evictable, tolerates, elsewhere} {
		// The cache shows what is stored.
		if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			t.Fatal(err)
		}
		put(m)
	}
	put(on(a, "node-1"), on(b, "node-1"), on(c, "node-1"), on(evictable, "node-1"),
		on(tolerates, "node-1", map[string]any{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}), on(elsewhere, "node-2"))
	step := func(what string, want ...string) {
		t.Helper()
		if writes, _ := r.step(pool); !slices.Equal(writes, want) {
			t.Errorf("%s: writes %q, want %q", what, writes, want)
		}
	}
	// The client has it cordoned; the cache shows that later.
	seen := nodeNamed("node-1", false)
	nodes := &leavingNodes{store: r.view.members.(podNodes), known: -1, node: func(_ context.Context, name string) (*unstructured.Unstructured, error) {
		if name == "node-1" {
			return seen, nil
		}
		return nodeNamed(name, false), nil
	}}
	r.view.nodes, r.view.sawNode = nodes.now, nodes.saw
	step("no node is cordoned")
	seen = node
	if diff := cmp.Diff([]types.NamespacedName{client.ObjectKeyFromObject(pool)}, slices.Compact(r.view.poolsOnNode(t.Context(), node))); diff != "" {
		t.Errorf("pools to look at (-want,+got):\n%s", diff)
	}
	step("cordoned", "delete a", "delete b")
	var reported []string
	for len(recorder.Events) > 0 {
		reported = append(reported, <-recorder.Events)
	}
	if want := "Normal MembersMoved deleted 2 members on nodes that are cordoned"; !slices.Contains(reported, want) {
		t.Errorf("the pool says %q, want %q among it", reported, want)
	}
	drop(a, b)
	step("two are missing")
	x := of(pool, v1, "x").Created(now).Obj()
	put(x, on(x, "node-2"))
	step("one has come", "delete c")
	drop(c)
	y := of(pool, v1, "y").Created(now).Obj()
	put(y, on(y, "node-2"))
	step("what may stay stays")
}

// A pool at rest is planned anew when a node with its members is cordoned, or is not any
// more.
func TestACordonEndsTheRestOfAPool(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).Obj()
	a := of(pool, v1, "a").Obj()
	r := newHarness(t, nil, pool, v1, a)
	put, _ := storeBy(t, r, platform.NewReducer(unevictable{}))
	put(a, builders.MakePod(a).Stored("node-1").Obj())
	m := r.record(client.ObjectKeyFromObject(pool), pool.GetUID())
	nodes := map[string]freshness.Node{}
	r.view.nodes = func(context.Context) (worseNodes, error) { return worseNodes{cordoned: nodes}, nil }
	version := func() int {
		t.Helper()
		s, err := r.look(t.Context(), m, pool, v1)
		if err != nil {
			t.Fatal(err)
		}
		return s.roster.version
	}
	at := version()
	if now := version(); now != at {
		t.Errorf("nothing changed, and the version is %d, want %d", now, at)
	}
	nodes["node-1"] = freshness.Node{Cordoned: []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}}
	if now := version(); now != at+1 {
		t.Errorf("its node is cordoned, and the version is %d, want %d", now, at+1)
	}
	if now := version(); now != at+1 {
		t.Errorf("it still is, and the version is %d, want %d", now, at+1)
	}
	delete(nodes, "node-1")
	if now := version(); now != at+2 {
		t.Errorf("it is not any more, and the version is %d, want %d", now, at+2)
	}
	r.view.nodes = func(context.Context) (worseNodes, error) {
		return worseNodes{}, errors.New("the cache has not started")
	}
	if _, err := r.look(t.Context(), m, pool, v1); err == nil {
		t.Error("nobody knows which nodes are cordoned, and a plan is made")
	}
}

func TestAMemberThatIsStaleIsNotSaidToBeMoved(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Obj()
	r := newHarness(t, history{v2, v1}, append(ofAll(pool, v1, 2), pool, v2)...)
	recorder := events.NewFakeRecorder(10)
	r.events = recorder
	r.step(pool)
	for len(recorder.Events) > 0 {
		if event := <-recorder.Events; strings.Contains(event, "MembersMoved") {
			t.Errorf("the pool says %q", event)
		}
	}
}
