package jsonobject

// keys are those that objects usually have, so that they are not kept once for each
// object.
var keys = known(
	"apiVersion", "kind", "metadata", "spec", "status",
	"name", "namespace", "uid", "resourceVersion", "generation", "generateName", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers", "controller", "blockOwnerDeletion",
	"podTemplate", "volumeClaimTemplates", "service", "operatingMode", "replicas", "sandboxTemplateRef", "warmPoolRef", "updateStrategy", "type",
	"networkPolicyManagement", "envVarsInjectionPolicy", "volumeClaimTemplatesPolicy", "shutdownPolicy",
	"containers", "initContainers", "volumes", "image", "imagePullPolicy", "command", "args", "env", "value", "valueFrom", "ports", "containerPort", "protocol",
	"resources", "requests", "limits", "cpu", "memory", "volumeMounts", "mountPath", "readOnly", "securityContext", "terminationMessagePath", "terminationMessagePolicy",
	"automountServiceAccountToken", "dnsPolicy", "dnsConfig", "nameservers", "restartPolicy", "schedulerName", "serviceAccount", "serviceAccountName",
	"terminationGracePeriodSeconds", "enableServiceLinks", "preemptionPolicy", "priority", "nodeName", "tolerations", "key", "operator", "effect",
	"tolerationSeconds", "hostIP", "hostIPs", "ip", "podIP", "podIPs", "phase", "qosClass", "startTime", "containerStatuses", "conditions", "reason", "message",
	"lastTransitionTime", "lastProbeTime", "observedGeneration", "ready", "restartCount", "started", "state", "lastState", "running", "startedAt", "containerID", "imageID",
	"taints", "unschedulable", "podCIDR", "podCIDRs", "providerID", "addresses", "address", "allocatable", "capacity", "images", "names", "sizeBytes", "nodeInfo", "daemonEndpoints",
	"lastHeartbeatTime", "sandbox", "selector", "matchLabels", "readyReplicas", "projected", "sources", "defaultMode", "emptyDir", "configMap", "secret", "items", "path",
)

func known(names ...string) map[string]string {
	out := make(map[string]string, len(names))
	for _, name := range names {
		out[name] = name
	}
	return out
}
