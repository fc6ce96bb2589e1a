package platform

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/revision"
)

// podPaths are the leaves that any Pod may have beyond what its member says:
// defaults of the API server (only with the default's value, because a template
// that set another one has changed), and what the service account, toleration,
// priority and scheduling steps add. Overhead is always that of the Pod's
// RuntimeClass: the API server takes no other. From k8s.io/kubernetes v1.37
// pkg/apis/core/v1/defaults.go and zz_generated.defaults.go, and plugin/pkg/admission.
var podPaths = append(containerPaths("containers", "initContainers"),
	"podTemplate.spec.restartPolicy=Always",
	"podTemplate.spec.terminationGracePeriodSeconds=30",
	"podTemplate.spec.dnsPolicy=ClusterFirst",
	"podTemplate.spec.schedulerName=default-scheduler",
	"podTemplate.spec.enableServiceLinks=true",
	"podTemplate.spec.overhead",
	"podTemplate.spec.preemptionPolicy",
	"podTemplate.spec.priority",
	"podTemplate.spec.priorityClassName",
	"podTemplate.spec.nodeName",
	"podTemplate.spec.securityContext={}",
	"podTemplate.spec.serviceAccount",
	"podTemplate.spec.serviceAccountName=default",
	"podTemplate.spec.imagePullSecrets",
	"podTemplate.spec.tolerations[key=node.kubernetes.io/not-ready]",
	"podTemplate.spec.tolerations[key=node.kubernetes.io/unreachable]",
	"podTemplate.spec.volumes[name=kube-api-access-*]",
	"podTemplate.spec.volumes[*].configMap.defaultMode=420",
	"podTemplate.spec.volumes[*].secret.defaultMode=420",
	"podTemplate.spec.volumes[*].projected.defaultMode=420",
	"podTemplate.spec.volumes[*].downwardAPI.defaultMode=420",
	"podTemplate.spec.volumes[*].downwardAPI.items[*].fieldRef.apiVersion=v1",
	"podTemplate.spec.volumes[*].projected.sources[*].downwardAPI.items[*].fieldRef.apiVersion=v1",
	"podTemplate.spec.volumes[*].projected.sources[*].serviceAccountToken.expirationSeconds=3600",
	"podTemplate.spec.volumes[*].emptyDir={}",
	"podTemplate.spec.volumes[*].image.pullPolicy=IfNotPresent",
	"podTemplate.spec.volumes[*].ephemeral.volumeClaimTemplate.spec.volumeMode=Filesystem",
	`podTemplate.spec.volumes[*].hostPath.type=""`,
	"podTemplate.spec.volumes[*].iscsi.iscsiInterface=default",
	"podTemplate.spec.volumes[*].rbd.pool=rbd",
	"podTemplate.spec.volumes[*].rbd.user=admin",
	"podTemplate.spec.volumes[*].rbd.keyring=/etc/ceph/keyring",
	"podTemplate.spec.volumes[*].azureDisk.cachingMode=ReadWrite",
	"podTemplate.spec.volumes[*].azureDisk.fsType=ext4",
	"podTemplate.spec.volumes[*].azureDisk.kind=Shared",
	"podTemplate.spec.volumes[*].azureDisk.readOnly=false",
	"podTemplate.spec.volumes[*].scaleIO.storageMode=ThinProvisioned",
	"podTemplate.spec.volumes[*].scaleIO.fsType=xfs",
)

// podOverrides are the leaves that any Pod may have whatever its member says: what
// plugin/pkg/admission/alwayspullimages writes everywhere.
var podOverrides = []string{
	"podTemplate.spec.containers[*].imagePullPolicy=Always",
	"podTemplate.spec.initContainers[*].imagePullPolicy=Always",
	"podTemplate.spec.volumes[*].image.pullPolicy=Always",
}

func containerPaths(lists ...string) []string {
	var out []string
	for _, list := range lists {
		c := "podTemplate.spec." + list + "[*]."
		out = append(out,
			c+"imagePullPolicy=IfNotPresent",
			c+"terminationMessagePath=/dev/termination-log",
			c+"terminationMessagePolicy=File",
			c+"env[*].valueFrom.fieldRef.apiVersion=v1",
			c+"env[*].valueFrom.fileKeyRef.optional=false",
			c+"ports[*].protocol=TCP",
			c+"volumeMounts[mountPath=/var/run/secrets/kubernetes.io/serviceaccount]",
		)
		for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
			out = append(out,
				c+probe+".timeoutSeconds=1",
				c+probe+".periodSeconds=10",
				c+probe+".successThreshold=1",
				c+probe+".failureThreshold=3",
				c+probe+`.grpc.service=""`,
			)
		}
		for _, action := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"} {
			out = append(out,
				c+action+".httpGet.scheme=HTTP",
				c+action+".httpGet.path=/",
				c+action+".httpGet.protocol=HTTP1",
			)
		}
	}
	return out
}

// PodInjections returns the paths at which a Pod may have more than its member says:
// those above, what was added to this Pod (nil where it does not matter), what the pool's
// owner listed, and what the platform itself adds.
func PodInjections(pod *unstructured.Unstructured, listed revision.PathSet, more ...string) (revision.PathSet, error) {
	if pod != nil {
		more = append(admitted(pod), more...)
	}
	always, err := parsedPodPaths()
	if err != nil {
		return revision.PathSet{}, fmt.Errorf("listing what every pod may have beyond its member: %w", err)
	}
	set, err := revision.ParsePaths(more...)
	if err != nil {
		return revision.PathSet{}, fmt.Errorf("listing what a pod may have beyond its member: %w", err)
	}
	return always.Union(set).Union(listed), nil
}

var parsedPodPaths = sync.OnceValues(func() (revision.PathSet, error) {
	added, err := revision.ParsePaths(podPaths...)
	overridden, errOverridden := revision.ParsePaths(podOverrides...)
	return added.Union(overridden.Overriding()), errors.Join(err, errOverridden)
})
