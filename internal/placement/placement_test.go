package placement

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
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

func TestNodeStateOf(t *testing.T) {
	set := func(value any, path ...string) func(*unstructured.Unstructured) {
		return func(n *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(n.Object, value, path...); err != nil {
				t.Fatal(err)
			}
		}
	}
	taint := func(effect string) []any {
		return []any{map[string]any{"key": "k", "value": "v", "effect": effect, "timeAdded": "2026-01-01T00:00:00Z"}}
	}
	unschedulable := corev1.Taint{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}
	all := []corev1.Taint{unschedulable}
	cordons := []any{map[string]any{"key": unschedulable.Key, "effect": "NoSchedule"}}
	for _, is := range [][2]string{{"ToBeDeletedByClusterAutoscaler", "1764036000"}, {"karpenter.sh/disrupted", ""}, {"karpenter.sh/disruption", "disrupting"}} {
		all = append(all, corev1.Taint{Key: is[0], Value: is[1], Effect: corev1.TaintEffectNoSchedule})
		cordons = append(cordons, map[string]any{"key": is[0], "value": is[1], "effect": "NoSchedule"})
	}
	cases := map[string]struct {
		node *unstructured.Unstructured
		want freshness.Node
	}{
		"well":         {makeNode(func(*unstructured.Unstructured) {}), freshness.Node{}},
		"cordoned":     {makeNode(set(true, "spec", "unschedulable")), freshness.Node{Cordoned: []corev1.Taint{unschedulable}}},
		"not cordoned": {makeNode(set(false, "spec", "unschedulable")), freshness.Node{}},
		"cordoned, and taint": {makeNode(func(n *unstructured.Unstructured) {
			set(true, "spec", "unschedulable")(n)
			set(cordons, "spec", "taints")(n)
		}), freshness.Node{Cordoned: all}},
		"taints of a cordon":  {makeNode(set(cordons, "spec", "taints")), freshness.Node{Cordoned: all}},
		"such taints, softly": {makeNode(set([]any{map[string]any{"key": "karpenter.sh/disrupted", "effect": "PreferNoSchedule"}}, "spec", "taints")), freshness.Node{}},
		"taint, scheduling":   {makeNode(set(taint("NoSchedule"), "spec", "taints")), freshness.Node{}},
		"taint, evicting": {makeNode(set(taint("NoExecute"), "spec", "taints")),
			freshness.Node{Evicting: []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}}}},
		"not ready": {makeNode(set([]any{map[string]any{"type": "Ready", "status": "Unknown"}}, "status", "conditions")), freshness.Node{NotReady: true}},
		"being deleted": {makeNode(func(n *unstructured.Unstructured) { n.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) }),
			freshness.Node{Deleting: true}},
		"gone":             {nil, freshness.Node{Gone: true}},
		"says nothing yet": {makeNode(set([]any{}, "status", "conditions")), freshness.Node{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, NodeState(tc.node)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

var (
	dedicatedNode = makeNode(func(n *unstructured.Unstructured) {
		n.Object["spec"] = map[string]any{"taints": []any{map[string]any{"key": "dedicated", "value": "sandbox", "effect": "NoExecute"}}}
	})
	dedicatedFor = map[string]any{"key": "dedicated", "operator": "Equal", "value": "sandbox", "effect": "NoExecute"}
)

func TestTolerations(t *testing.T) {
	limited := map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(300)}
	scheduling := map[string]any{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}
	everything := map[string]any{"operator": "Exists"}
	cordon := map[string]any{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
	anyCordon := map[string]any{"operator": "Exists", "effect": "NoSchedule"}
	preferred := map[string]any{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "PreferNoSchedule"}
	limitedCordon := map[string]any{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": int64(1)}
	cases := map[string]struct {
		tolerations []any
		leaves      bool
		kept        []any
	}{
		"none":                  {nil, true, nil},
		"the API server's own":  {[]any{limited}, true, nil},
		"for scheduling only":   {[]any{scheduling}, true, nil},
		"of a cordon":           {[]any{limited, cordon}, true, []any{limited, cordon}},
		"of every cordon":       {[]any{anyCordon}, true, []any{anyCordon}},
		"of a cordon, limited":  {[]any{limitedCordon}, true, nil},
		"of a preference only":  {[]any{preferred}, true, nil},
		"of the taint":          {[]any{limited, dedicatedFor}, false, []any{limited, dedicatedFor}},
		"of everything":         {[]any{everything}, false, []any{everything}},
		"of the taint, limited": {[]any{map[string]any{"key": "dedicated", "operator": "Exists", "tolerationSeconds": int64(0)}}, true, nil},
		"of no known form":      {[]any{map[string]any{"key": "dedicated", "operator": "Exists", "tolerationSeconds": "ever"}}, true, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{}}}
			if tc.tolerations != nil {
				pod.Object["spec"] = map[string]any{"tolerations": tc.tolerations}
			}
			if got := NodeState(dedicatedNode).Leaving(Tolerations(pod)) != ""; got != tc.leaves {
				t.Errorf("must leave: %t, want %t", got, tc.leaves)
			}
			if diff := cmp.Diff(tc.kept, StayTolerations(pod)); diff != "" {
				t.Errorf("kept (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestWhereAPodIs(t *testing.T) {
	pod := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeName": "node-1", "schedulerName": "freshbind"}}}
	for name, tc := range map[string]struct {
		pod                 *unstructured.Unstructured
		wantNode, wantSched string
	}{
		"on a node":   {pod, "node-1", "freshbind"},
		"says little": {&unstructured.Unstructured{Object: map[string]any{}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NodeName(tc.pod); got != tc.wantNode {
				t.Errorf("NodeName() = %q, want %q", got, tc.wantNode)
			}
			if got := SchedulerName(tc.pod); got != tc.wantSched {
				t.Errorf("SchedulerName() = %q, want %q", got, tc.wantSched)
			}
		})
	}
	if got := NodeName(nil); got != "" {
		t.Errorf("no Pod is on node %q", got)
	}
}

func TestNodeReady(t *testing.T) {
	says := func(conditions ...any) func(*unstructured.Unstructured) {
		return func(n *unstructured.Unstructured) {
			if err := unstructured.SetNestedSlice(n.Object, conditions, "status", "conditions"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		node         *unstructured.Unstructured
		ready, known bool
	}{
		"ready":             {makeNode(func(*unstructured.Unstructured) {}), true, true},
		"not ready":         {makeNode(says(map[string]any{"type": "Ready", "status": "Unknown"})), false, true},
		"says other things": {makeNode(says(map[string]any{"type": "DiskPressure", "status": "True"})), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if ready, known := NodeReady(tc.node); ready != tc.ready || known != tc.known {
				t.Errorf("NodeReady() = %t, %t, want %t, %t", ready, known, tc.ready, tc.known)
			}
		})
	}
}
