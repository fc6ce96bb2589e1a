package placement_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/placement"
)

// A node that is gone is one more thing that nodes can say.
func ExampleNodeState() {
	drained := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"taints": []any{map[string]any{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}}},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "Unknown"}}},
	}}
	for _, node := range []*unstructured.Unstructured{drained, nil} {
		state := placement.NodeState(node)
		fmt.Println(state.Gone, state.NotReady, len(state.Evicting))
	}
	// Output:
	// false true 1
	// true false 0
}
