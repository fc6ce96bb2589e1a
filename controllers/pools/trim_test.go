package pools

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTrimNode(t *testing.T) {
	taints := []any{map[string]any{"key": "k", "effect": "NoExecute"}}
	images := []any{map[string]any{"names": []any{"a"}}}
	ready := func(status string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status}}}
	}
	node := func(change func(node map[string]any)) map[string]any {
		n := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n", "resourceVersion": "7"}}
		change(n)
		return n
	}
	full := func(condition string) map[string]any {
		return node(func(n map[string]any) {
			n["metadata"] = map[string]any{
				"name": "n", "resourceVersion": "7", "uid": "u", "labels": map[string]any{"zone": "z"},
				"annotations": map[string]any{"a": "b"}, "managedFields": []any{map[string]any{"manager": "m"}},
			}
			n["spec"] = map[string]any{"podCIDR": "10.0.0.0/24", "taints": taints}
			n["status"] = map[string]any{
				"capacity": map[string]any{"cpu": "1"}, "images": images,
				"conditions": []any{
					map[string]any{"type": "MemoryPressure", "status": "False", "message": "m"},
					map[string]any{"type": "Ready", "status": condition, "lastHeartbeatTime": "t"},
				},
			}
		})
	}
	for name, tc := range map[string]struct {
		scheduling bool
		node, want map[string]any
	}{
		"ready": {false, full("True"), node(func(n map[string]any) {
			n["spec"], n["status"] = map[string]any{"taints": taints}, ready("True")
		})},
		"not ready": {false, full("False"), node(func(n map[string]any) {
			n["spec"], n["status"] = map[string]any{"taints": taints}, ready("Unknown")
		})},
		"not known": {false, full("Unknown"), node(func(n map[string]any) {
			n["spec"], n["status"] = map[string]any{"taints": taints}, ready("Unknown")
		})},
		"for scheduling": {true, full("True"), node(func(n map[string]any) {
			n["metadata"].(map[string]any)["labels"] = map[string]any{"zone": "z"}
			status := ready("True")
			status["images"] = images
			n["spec"], n["status"] = map[string]any{"taints": taints}, status
		})},
		"being deleted": {false, node(func(n map[string]any) { n["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z" }),
			node(func(n map[string]any) { n["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z" })},
		"cordoned": {false, node(func(n map[string]any) { n["spec"] = map[string]any{"unschedulable": true, "podCIDR": "10.0.0.0/24"} }),
			node(func(n map[string]any) { n["spec"] = map[string]any{"unschedulable": true} })},
		"of which nothing is known": {false, node(func(map[string]any) {}), node(func(map[string]any) {})},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := trimNode(tc.scheduling)(&unstructured.Unstructured{Object: tc.node})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.(*unstructured.Unstructured).Object); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(ready("True"), isReady); diff != "" {
				t.Errorf("what all nodes share has changed:\n%s", diff)
			}
		})
	}
}
