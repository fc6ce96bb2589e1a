package agentsandbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
)

func nodeNameOf(pod *unstructured.Unstructured) string {
	if pod == nil {
		return ""
	}
	return str(pod.Object, "spec", "nodeName")
}

// NodeStateOf is what a node says of whether Pods can stay; nil is one that is
// gone.
func NodeStateOf(node *unstructured.Unstructured) freshness.Node {
	if node == nil {
		return freshness.Node{Gone: true}
	}
	out := freshness.Node{Deleting: node.GetDeletionTimestamp() != nil}
	spec, _ := node.Object["spec"].(map[string]any)
	for _, taint := range objects(spec, "taints") {
		if effect := corev1.TaintEffect(str(taint, "effect")); effect == corev1.TaintEffectNoExecute {
			out.Evicting = append(out.Evicting, corev1.Taint{Key: str(taint, "key"), Value: str(taint, "value"), Effect: effect})
		}
	}
	status, _ := node.Object["status"].(map[string]any)
	for _, c := range objects(status, "conditions") {
		if str(c, "type") == string(corev1.NodeReady) && str(c, "status") != string(corev1.ConditionTrue) {
			out.NotReady = true
		}
	}
	return out
}

// MustLeave reports whether a Pod that is on the node has to leave it.
func MustLeave(node freshness.Node, pod *unstructured.Unstructured) bool {
	return node.Leaving(tolerationsOf(pod)) != ""
}

func tolerationsOf(pod *unstructured.Unstructured) []corev1.Toleration {
	spec, _ := pod.Object["spec"].(map[string]any)
	var out []corev1.Toleration
	for _, m := range objects(spec, "tolerations") {
		t := corev1.Toleration{
			Key: str(m, "key"), Value: str(m, "value"),
			Operator: corev1.TolerationOperator(str(m, "operator")), Effect: corev1.TaintEffect(str(m, "effect")),
		}
		if seconds, limited, err := unstructured.NestedInt64(m, "tolerationSeconds"); limited || err != nil {
			t.TolerationSeconds = &seconds
		}
		out = append(out, t)
	}
	return out
}

// StayTolerations are the tolerations of a Pod, as stored, that decide whether it
// stays on a node: none when it tolerates no taint that evicts for ever.
func StayTolerations(pod *unstructured.Unstructured) []any {
	for _, t := range tolerationsOf(pod) {
		if t.TolerationSeconds == nil && (t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute) {
			list, _, _ := unstructured.NestedFieldNoCopy(pod.Object, "spec", "tolerations")
			stored, _ := list.([]any)
			return stored
		}
	}
	return nil
}

// NodeReady reports whether a Node is ready; known is false when it does not say.
func NodeReady(node *unstructured.Unstructured) (ready, known bool) {
	status, _ := node.Object["status"].(map[string]any)
	for _, c := range objects(status, "conditions") {
		if str(c, "type") == "Ready" {
			return str(c, "status") == "True", true
		}
	}
	return false, false
}
