package controlplane

import (
	"errors"
	"fmt"
	"io"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxNodes is how many fake nodes can have a pod network of their own.
const maxNodes = 2048

// Options say what a cluster consists of. The zero value is one API server on
// one etcd.
type Options struct {
	// APIServers is how many API servers share the one etcd; 0 means 1. All
	// other programs of the cluster talk to the first.
	APIServers int
	// EtcdProxies puts an EtcdProxy between each API server and etcd.
	EtcdProxies bool
	// Nodes is how many fake nodes kwok keeps alive; 0 means no kwok. Without
	// Scheduler, pending pods are bound to them in turn.
	Nodes int
	// Stages is YAML of kwok Stage objects, used beside those of stages.yaml that
	// make nodes and pods ready and take deleted pods away. One with a weight of
	// 1 or more replaces those for the objects that it selects.
	Stages string
	// ControllerManager runs the parts of kube-controller-manager named in
	// its flags, among them garbage collection, namespaces and node lifecycle.
	// Without it nothing deletes owned objects or the content of namespaces,
	// and pods have no service account.
	ControllerManager bool
	// ControllerManagerFlags come last, so they win.
	ControllerManagerFlags []string
	// WithoutControllers are parts of the controller manager that do not run, by
	// their names in its flag --controllers.
	WithoutControllers []string
	// Scheduler runs kube-scheduler instead of the simple binding in turn.
	Scheduler bool
	// OwnScheduler leaves pending pods alone: whoever starts the cluster runs
	// schedulers with StartScheduler.
	OwnScheduler bool
	// SchedulerConfig is a KubeSchedulerConfiguration in YAML; the kubeconfig is
	// filled in, and leader election is off unless it says otherwise.
	SchedulerConfig string
	// CRDs are installed before the controller manager starts: its garbage
	// collector looks for new kinds only every 30 s.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// APIServerFlags come last, so they win.
	APIServerFlags []string
	// AuditLog writes every stage of every request, with metadata, to the file
	// that AuditLogPath names.
	AuditLog bool
	// Dir receives certificates, kubeconfigs, data and logs, and is left behind
	// by Stop. When empty, a temporary folder is used and removed.
	Dir string
	// Log receives one line per program that has to be built; nil means silence.
	Log io.Writer
}

func (o Options) validate() error {
	switch {
	case o.APIServers < 0:
		return fmt.Errorf("option APIServers is %d: use 0 (for 1) or more", o.APIServers)
	case o.Nodes < 0 || o.Nodes > maxNodes:
		return fmt.Errorf("option Nodes is %d: use 0 to %d", o.Nodes, maxNodes)
	case o.Stages != "" && o.Nodes == 0:
		return errors.New("option Stages is for kwok: set Nodes to 1 or more")
	case o.SchedulerConfig != "" && !o.Scheduler:
		return errors.New("option SchedulerConfig is set: set Scheduler as well")
	case o.OwnScheduler && o.Scheduler:
		return errors.New("options Scheduler and OwnScheduler are both set: set one of them")
	case len(o.ControllerManagerFlags) > 0 && !o.ControllerManager:
		return errors.New("option ControllerManagerFlags is set: set ControllerManager as well")
	}
	return nil
}

// controllers are the parts of the controller manager that run.
func (o Options) controllers() []string {
	return slices.DeleteFunc(slices.Clone(controllers), func(name string) bool { return slices.Contains(o.WithoutControllers, name) })
}

// tools are the programs that a cluster with these options needs.
func (o Options) tools() []string {
	names := []string{Etcd, KubeAPIServer}
	for _, optional := range []struct {
		name   string
		wanted bool
	}{{Kwok, o.Nodes > 0}, {KubeControllerManager, o.ControllerManager}, {KubeScheduler, o.Scheduler || o.OwnScheduler}} {
		if optional.wanted {
			names = append(names, optional.name)
		}
	}
	return names
}
