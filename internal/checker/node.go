package checker

import (
	"encoding/json"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// nodeState is what decides whether Pods can stay on a node.
type nodeState struct {
	uid                types.UID
	deleting, notReady bool
	evicting           []corev1.Taint
}

func sameNode(a, b nodeState) bool {
	return a.uid == b.uid && a.deleting == b.deleting && a.notReady == b.notReady &&
		slices.EqualFunc(a.evicting, b.evicting, func(x, y corev1.Taint) bool { return x.Key == y.Key && x.Value == y.Value })
}

func nodeOf(u *unstructured.Unstructured) nodeState {
	s := nodeState{uid: u.GetUID(), deleting: u.GetDeletionTimestamp() != nil}
	var node corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &node); err != nil {
		return s
	}
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			s.evicting = append(s.evicting, t)
		}
	}
	for _, c := range node.Status.Conditions {
		s.notReady = s.notReady || c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	}
	return s
}

// nodeLeaves says why the Pod's node was about to go at rv; "" where it was not, or where no nodes are recorded.
func (h *History) nodeLeaves(pod podState, rv RV) string {
	if pod.node == "" || h.synced[Nodes] == "" {
		return ""
	}
	e, ok := h.nodes[pod.node].at(rv)
	switch {
	case !ok:
		return ""
	case e.gone:
		return "it did not exist any more"
	case e.state.deleting:
		return "it was being deleted"
	case e.state.notReady:
		return "it was not ready"
	}
	var spec corev1.PodSpec
	if err := json.Unmarshal([]byte(pod.spec), &spec); err != nil {
		return ""
	}
	for i := range e.state.evicting {
		taint := &e.state.evicting[i]
		at := slices.IndexFunc(spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), taint, true) })
		if at < 0 || spec.Tolerations[at].TolerationSeconds != nil {
			return "its taint " + taint.Key + " evicts"
		}
	}
	return ""
}
