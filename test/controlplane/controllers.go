package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// controllers are the parts of kube-controller-manager that run: what deletes
// and evicts, and what ordinary workloads need. The rest would only take time
// from two cores.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"deployment-controller",
	"disruption-controller",
	"endpointslice-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"node-lifecycle-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
	"taint-eviction-controller",
	"validatingadmissionpolicy-status-controller",
}

// startControllers starts the wanted ones of controller manager and scheduler.
func (c *Cluster) startControllers() error {
	if c.options.ControllerManager {
		if err := c.startControllerManager(); err != nil {
			return err
		}
	}
	if c.options.Scheduler {
		_, err := c.StartScheduler(KubeScheduler, nil, c.options.SchedulerConfig)
		return err
	}
	return nil
}

func (c *Cluster) startControllerManager() error {
	kubeconfig, err := c.userKubeconfig("system:kube-controller-manager")
	if err != nil {
		return err
	}
	flags := []string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(c.options.controllers(), ","),
		// Each controller acts under its own name, as in a cluster of kubeadm's.
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.certs.tokenKey,
		"--root-ca-file=" + c.certs.ca,
		"--leader-elect=false",
		// Nodes are lost when a test says so, not when a busy machine has no time for kwok.
		"--node-monitor-grace-period=1h",
		"--secure-port=0",
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--profiling=false",
	}
	_, err = c.Run(KubeControllerManager, c.programs[KubeControllerManager], append(flags, c.options.ControllerManagerFlags...)...)
	return err
}

// StartScheduler runs a kube-scheduler, named in its log, with a
// KubeSchedulerConfiguration in YAML, in which the kubeconfig is filled in. It
// acts as system:kube-scheduler, or as whoever as is for. The cluster needs
// Options.Scheduler or Options.OwnScheduler.
func (c *Cluster) StartScheduler(name string, as *rest.Config, config string) (*Process, error) {
	program, ok := c.programs[KubeScheduler]
	if !ok {
		return nil, errors.New("start scheduler: set option OwnScheduler of the cluster")
	}
	if as == nil {
		var err error
		if as, err = c.User("system:kube-scheduler"); err != nil {
			return nil, err
		}
	}
	kubeconfig := filepath.Join(c.dir, "kubeconfig-"+fileName(name))
	if err := c.WriteKubeconfig(as, kubeconfig); err != nil {
		return nil, err
	}
	completed, err := schedulerConfig(config, kubeconfig)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.dir, name+".yaml")
	if err := os.WriteFile(path, completed, 0o644); err != nil {
		return nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	// What nobody calls back does not come back by itself while a test looks, however
	// long that takes on a busy machine.
	return c.Run(name, program, "--config="+path, "--secure-port=0", "--pod-max-in-unschedulable-pods-duration=24h")
}

// schedulerConfig completes a KubeSchedulerConfiguration: once there is a file,
// kube-scheduler takes the kubeconfig from nowhere else.
func schedulerConfig(given, kubeconfig string) ([]byte, error) {
	config := map[string]any{}
	if err := yaml.Unmarshal([]byte(given), &config); err != nil {
		return nil, fmt.Errorf("option SchedulerConfig is not YAML: %w", err)
	}
	if config == nil {
		config = map[string]any{}
	}
	defaultTo(config, "apiVersion", "kubescheduler.config.k8s.io/v1")
	defaultTo(config, "kind", "KubeSchedulerConfiguration")
	defaultTo(config, "leaderElection", map[string]any{"leaderElect": false})
	config["clientConnection"] = map[string]any{"kubeconfig": kubeconfig, "qps": 200, "burst": 400}
	out, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode scheduler configuration: %w", err)
	}
	return out, nil
}

func defaultTo(config map[string]any, key string, value any) {
	if _, ok := config[key]; !ok {
		config[key] = value
	}
}

// waitControllers returns when pods can be created: with a controller manager
// that takes the default service account of the default namespace.
func (c *Cluster) waitControllers(ctx context.Context) error {
	if !c.options.ControllerManager {
		return nil
	}
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, readyPoll, startTimeout, true, func(ctx context.Context) (bool, error) {
		if err := c.Err(); err != nil {
			return false, err
		}
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for the default service account: %w", err)
	}
	return nil
}

// fileName makes a user's name fit for a file.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == ':' || r == '/' || r == os.PathSeparator {
			return '-'
		}
		return r
	}, name)
}
