package pools

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/placement"
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

func cordoned(name string, effects ...any) *unstructured.Unstructured {
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
	nodes, reads := map[string]*unstructured.Unstructured{"a": cordoned("a", "NoExecute"), "b": cordoned("b"), "c": cordoned("c", "NoExecute")}, 0
	l := &leavingNodes{store: store, known: -1, node: func(_ context.Context, name string) (*unstructured.Unstructured, error) {
		reads++
		return nodes[name], nil
	}}
	saw := func(name string) { l.saw(name, placement.NodeState(nodes[name])) }
	for i, tc := range []struct {
		name   string
		change func()
		want   []string
		reads  int
	}{
		{"at first all are looked at that have Pods", func() {}, []string{"a"}, 2},
		{"nothing has changed", func() {}, []string{"a"}, 2},
		{"a node says it is alive", func() { saw("a") }, []string{"a"}, 2},
		{"a node is to go", func() {
			nodes["b"] = cordoned("b", "NoExecute")
			saw("b")
		}, []string{"a", "b"}, 4},
		{"it has another taint", func() {
			nodes["b"] = cordoned("b", "NoExecute", "NoExecute")
			saw("b")
		}, []string{"a", "b"}, 6},
		{"a Pod is on another node", func() { store.nodes, store.version = append(store.nodes, "c"), 1 }, []string{"a", "b", "c"}, 9},
		{"a node is gone", func() {
			delete(nodes, "a")
			saw("a")
		}, []string{"a", "b", "c"}, 12},
		{"a node comes back", func() {
			nodes["a"] = cordoned("a")
			saw("a")
		}, []string{"b", "c"}, 15},
	} {
		tc.change()
		leaving, err := l.now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(leaving))); diff != "" || reads != tc.reads {
			t.Errorf("step %d, %s: %d reads, want %d; leaving (-want,+got):\n%s", i, tc.name, reads, tc.reads, diff)
		}
	}
}
