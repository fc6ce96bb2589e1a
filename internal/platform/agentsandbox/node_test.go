package agentsandbox

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func makeNode(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	n := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "node-1"},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "DiskPressure", "status": "False"},
			map[string]any{"type": "Ready", "status": "True"},
		}},
	}}
	change(n)
	return n
}

func TestLeaving(t *testing.T) {
	set := func(value any, path ...string) func(*unstructured.Unstructured) {
		return func(n *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(n.Object, value, path...); err != nil {
				t.Fatal(err)
			}
		}
	}
	taint := func(effect string) []any { return []any{map[string]any{"key": "k", "effect": effect}} }
	cases := map[string]struct {
		node *unstructured.Unstructured
		want string
	}{
		"well":              {makeNode(func(*unstructured.Unstructured) {}), ""},
		"cordoned only":     {makeNode(set(true, "spec", "unschedulable")), ""},
		"taint, scheduling": {makeNode(set(taint("NoSchedule"), "spec", "taints")), ""},
		"taint, evicting":   {makeNode(set(taint("NoExecute"), "spec", "taints")), "taint k evicts"},
		"not ready":         {makeNode(set([]any{map[string]any{"type": "Ready", "status": "Unknown"}}, "status", "conditions")), "it is not ready"},
		"being deleted":     {makeNode(func(n *unstructured.Unstructured) { n.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) }), "it is being deleted"},
		"gone":              {nil, "it does not exist any more"},
		"says nothing yet":  {makeNode(set([]any{}, "status", "conditions")), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := leaving(tc.node); got != tc.want {
				t.Errorf("leaving() = %q, want %q", got, tc.want)
			}
		})
	}
}
