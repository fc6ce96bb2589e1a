// Package placement reads where Pods run, and whether they can stay there, off Nodes
// and Pods as they are stored. That is the same on every platform.
package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fields"
	"github.com/freshbind/freshbind/internal/freshness"
)

// NodeName is the node that a Pod is on; "" when it is on none.
func NodeName(pod *unstructured.Unstructured) string {
	if pod == nil {
		return ""
	}
	return fields.String(pod.Object, "spec", "nodeName")
}

// SchedulerName is the scheduler that a Pod is for.
func SchedulerName(pod *unstructured.Unstructured) string {
	return fields.String(pod.Object, "spec", "schedulerName")
}

// cordons are the keys of taints with the effect NoSchedule that whoever empties a node
// gives it: kubectl drain, cluster-autoscaler, and Karpenter, now and before v1.
var cordons = []string{
	corev1.TaintNodeUnschedulable, "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption",
}

// NodeState is what a node says of whether Pods can stay; nil is one that is
// gone.
func NodeState(node *unstructured.Unstructured) freshness.Node {
	if node == nil {
		return freshness.Node{Gone: true}
	}
	out := freshness.Node{Deleting: node.GetDeletionTimestamp() != nil}
	spec, _ := node.Object["spec"].(map[string]any)
	if unschedulable, _, _ := unstructured.NestedBool(spec, "unschedulable"); unschedulable {
		// The taint comes later, from a controller.
		out.Cordoned = append(out.Cordoned, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, is := range fields.Objects(spec, "taints") {
		taint := corev1.Taint{Key: fields.String(is, "key"), Value: fields.String(is, "value"), Effect: corev1.TaintEffect(fields.String(is, "effect"))}
		switch {
		case taint.Effect == corev1.TaintEffectNoExecute:
			out.Evicting = append(out.Evicting, taint)
		case taint.Effect == corev1.TaintEffectNoSchedule && slices.Contains(cordons, taint.Key) && !slices.Contains(out.Cordoned, taint):
			out.Cordoned = append(out.Cordoned, taint)
		}
	}
	status, _ := node.Object["status"].(map[string]any)
	for _, c := range fields.Objects(status, "conditions") {
		if fields.String(c, "type") == string(corev1.NodeReady) && fields.String(c, "status") != string(corev1.ConditionTrue) {
			out.NotReady = true
		}
	}
	return out
}

// Tolerations are those of a Pod.
func Tolerations(pod *unstructured.Unstructured) []corev1.Toleration {
	spec, _ := pod.Object["spec"].(map[string]any)
	var out []corev1.Toleration
	for _, m := range fields.Objects(spec, "tolerations") {
		t := corev1.Toleration{
			Key: fields.String(m, "key"), Value: fields.String(m, "value"),
			Operator: corev1.TolerationOperator(fields.String(m, "operator")), Effect: corev1.TaintEffect(fields.String(m, "effect")),
		}
		if seconds, limited, err := unstructured.NestedInt64(m, "tolerationSeconds"); limited || err != nil {
			t.TolerationSeconds = &seconds
		}
		out = append(out, t)
	}
	return out
}

// StayTolerations are the tolerations of a Pod, as stored, that decide whether it
// stays on a node: none when it tolerates no taint that evicts for ever, and no cordon.
func StayTolerations(pod *unstructured.Unstructured) []any {
	for _, t := range Tolerations(pod) {
		evicts := t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute
		cordons := t.Effect == corev1.TaintEffectNoSchedule && (t.Key == "" || slices.Contains(cordons, t.Key))
		if t.TolerationSeconds == nil && (evicts || cordons) {
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
	for _, c := range fields.Objects(status, "conditions") {
		if fields.String(c, "type") == "Ready" {
			return fields.String(c, "status") == "True", true
		}
	}
	return false, false
}
