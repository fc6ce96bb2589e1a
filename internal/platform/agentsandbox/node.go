package agentsandbox

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

func nodeNameOf(pod *unstructured.Unstructured) string {
	if pod == nil {
		return ""
	}
	return str(pod.Object, "spec", "nodeName")
}

// leaving says why a node is about to go, "" when it is not. A cordon alone says
// nothing about what runs there; a taint that evicts does
// (kubernetes-sigs/agent-sandbox#1136).
func leaving(node *unstructured.Unstructured) string {
	switch {
	case node == nil:
		return "it does not exist any more"
	case node.GetDeletionTimestamp() != nil:
		return "it is being deleted"
	}
	spec, _ := node.Object["spec"].(map[string]any)
	for _, taint := range objects(spec, "taints") {
		if str(taint, "effect") == "NoExecute" {
			return "taint " + str(taint, "key") + " evicts"
		}
	}
	status, _ := node.Object["status"].(map[string]any)
	for _, c := range objects(status, "conditions") {
		if str(c, "type") == "Ready" && str(c, "status") != "True" {
			return "it is not ready"
		}
	}
	return ""
}
