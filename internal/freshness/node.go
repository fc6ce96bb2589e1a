package freshness

import (
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// Node is what tells whether Pods can stay on a node.
type Node struct {
	// Gone: it does not exist any more.
	Gone bool
	// Deleting: its deletion has begun.
	Deleting bool
	// NotReady: its condition Ready is not True.
	NotReady bool
	// Evicting are its taints with the effect NoExecute.
	Evicting []corev1.Taint
	// Cordoned are the taints by which nothing more is placed there, because somebody
	// empties it or is about to.
	Cordoned []corev1.Taint
}

// Leaving says why the node is about to go for a Pod with these tolerations; ""
// when the Pod can stay. A cordon alone says nothing about what runs there; a
// taint that evicts does (kubernetes-sigs/agent-sandbox#1136), unless the Pod
// tolerates it for ever, as on nodes that are set aside for sandboxes.
func (n Node) Leaving(tolerations []corev1.Toleration) string {
	switch {
	case n.Gone:
		return "it does not exist any more"
	case n.Deleting:
		return "it is being deleted"
	}
	for i := range n.Evicting {
		if !toleratesForEver(tolerations, &n.Evicting[i]) {
			return "taint " + n.Evicting[i].Key + " evicts"
		}
	}
	if n.NotReady {
		return "it is not ready"
	}
	return ""
}

// IsCordoned reports whether it is to be empty of Pods with these tolerations. Those
// that tolerate a cordon would be placed there again.
func (n Node) IsCordoned(tolerations []corev1.Toleration) bool {
	return slices.ContainsFunc(n.Cordoned, func(t corev1.Taint) bool { return !toleratesForEver(tolerations, &t) })
}

// WorseThan reports whether some Pod that could stay on the node before has to
// leave it now.
func (n Node) WorseThan(before Node) bool {
	if before.Gone || before.Deleting || before.NotReady {
		return false
	}
	return n.Gone || n.Deleting || n.NotReady ||
		slices.ContainsFunc(n.Evicting, func(t corev1.Taint) bool { return !slices.Contains(before.Evicting, t) })
}

// toleratesForEver decides by the first toleration that matches, as what evicts
// does (k8s.io/component-helpers/scheduling/corev1, GetMatchingTolerations).
// Operators that compare numbers are stored only where the cluster knows them.
func toleratesForEver(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		if tolerations[i].ToleratesTaint(logr.Discard(), taint, true) {
			return tolerations[i].TolerationSeconds == nil
		}
	}
	return false
}
