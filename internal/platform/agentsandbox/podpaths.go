package agentsandbox

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/revision"
)

// podPaths are the leaves that a Pod may have beyond what its Sandbox says:
// defaults of the API server (only with the default's value, because a template
// that set another one has changed), and what the service account, toleration,
// priority and scheduling steps add. From k8s.io/kubernetes v1.37
// pkg/apis/core/v1/defaults.go and plugin/pkg/admission.
var podPaths = append(containerPaths("containers", "initContainers"),
	"podTemplate.spec.restartPolicy=Always",
	"podTemplate.spec.terminationGracePeriodSeconds=30",
	"podTemplate.spec.dnsPolicy=ClusterFirst",
	"podTemplate.spec.schedulerName=default-scheduler",
	"podTemplate.spec.enableServiceLinks=true",
	"podTemplate.spec.preemptionPolicy=PreemptLowerPriority",
	"podTemplate.spec.priority",
	"podTemplate.spec.nodeName",
	"podTemplate.spec.securityContext={}",
	"podTemplate.spec.serviceAccount",
	"podTemplate.spec.serviceAccountName=default",
	"podTemplate.spec.imagePullSecrets",
	"podTemplate.spec.tolerations[*].key=node.kubernetes.io/not-ready",
	"podTemplate.spec.tolerations[*].key=node.kubernetes.io/unreachable",
	"podTemplate.spec.tolerations[*].operator=Exists",
	"podTemplate.spec.tolerations[*].effect=NoExecute",
	"podTemplate.spec.tolerations[*].tolerationSeconds",
	"podTemplate.spec.volumes[name=kube-api-access-*]",
	"podTemplate.spec.volumes[*].configMap.defaultMode=420",
	"podTemplate.spec.volumes[*].secret.defaultMode=420",
	"podTemplate.spec.volumes[*].projected.defaultMode=420",
	"podTemplate.spec.volumes[*].downwardAPI.defaultMode=420",
	"podTemplate.spec.volumes[*].downwardAPI.items[*].fieldRef.apiVersion=v1",
	"podTemplate.spec.volumes[*].ephemeral.volumeClaimTemplate.spec.volumeMode=Filesystem",
)

func containerPaths(lists ...string) []string {
	var out []string
	for _, list := range lists {
		c := "podTemplate.spec." + list + "[*]."
		out = append(out,
			c+"imagePullPolicy=Always",
			c+"imagePullPolicy=IfNotPresent",
			c+"terminationMessagePath=/dev/termination-log",
			c+"terminationMessagePolicy=File",
			c+"env[*].valueFrom.fieldRef.apiVersion=v1",
			c+"volumeMounts[mountPath=/var/run/secrets/kubernetes.io/serviceaccount]",
		)
		for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
			out = append(out,
				c+probe+".timeoutSeconds=1",
				c+probe+".periodSeconds=10",
				c+probe+".successThreshold=1",
				c+probe+".failureThreshold=3",
				c+probe+".httpGet.scheme=HTTP",
				c+probe+".httpGet.path=/",
			)
		}
	}
	return out
}

// podInjections returns the paths at which a Pod may have more than its Sandbox
// says: those above, the volumes of the Sandbox's volumeClaimTemplates, and what
// the pool's owner listed, and the scheduler that members are sent to.
func (p *Platform) podInjections(sandbox *unstructured.Unstructured, listed revision.PathSet) (revision.PathSet, error) {
	paths := podPaths[:len(podPaths):len(podPaths)]
	spec, _ := sandbox.Object["spec"].(map[string]any)
	for _, claim := range objects(spec, "volumeClaimTemplates") {
		paths = append(paths, fmt.Sprintf("podTemplate.spec.volumes[name=%s]", volumeClaimName(claim)))
	}
	if p.SchedulerName != "" {
		paths = append(paths, "podTemplate.spec.schedulerName="+p.SchedulerName)
	}
	set, err := revision.ParsePaths(paths...)
	if err != nil {
		return revision.PathSet{}, fmt.Errorf("listing what a pod may have beyond its sandbox: %w", err)
	}
	return set.Union(listed), nil
}
