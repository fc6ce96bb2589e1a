package chart

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/test/controlplane"
)

// Ports of the manager that the chart's defaults name.
const (
	webhookPort = 10250
	healthPort  = 8081
	metricsPort = 8080
)

// replica is the manager as a process of this machine, with an address of its
// own, as a Pod has one.
type replica struct {
	address string
	process *controlplane.Process
	// leaving: its Pod is being deleted, so it takes no new connections.
	leaving bool
	// down: it has been ended, and nobody starts it again.
	down bool
	// seen is when it was last ready.
	seen time.Time

	program, dir string
	identity     *rest.Config
	cluster      *controlplane.Cluster
	runs         int
}

// configure writes the file that the chart's ConfigMap has, as the Pod sees it,
// but for the addresses: all replicas share this machine.
func (r *replica) configure(ctx context.Context, c client.Client) error {
	var file corev1.ConfigMap
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: release}, &file); err != nil {
		return fmt.Errorf("read the chart's configuration: %w", err)
	}
	parsed, err := config.Parse([]byte(file.Data["config.yaml"]))
	if err != nil {
		return fmt.Errorf("read the chart's configuration: %w", err)
	}
	out := parsed.Configuration
	out.Webhook.BindAddress = r.at(webhookPort)
	out.Health.BindAddress, out.Metrics.BindAddress = r.at(healthPort), r.at(metricsPort)
	out.Logging.Level = 2
	content, err := yaml.Marshal(out)
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return os.WriteFile(r.path("config.yaml"), content, 0o600)
}

func (r *replica) path(name string) string { return filepath.Join(r.dir, r.address+"-"+name) }

func (r *replica) at(port int) string { return net.JoinHostPort(r.address, strconv.Itoa(port)) }

// start runs the manager as the Deployment does.
func (r *replica) start(ctx context.Context, c client.Client) error {
	if err := r.configure(ctx, c); err != nil {
		return err
	}
	if err := r.cluster.WriteKubeconfig(r.identity, r.path("kubeconfig")); err != nil {
		return err
	}
	r.runs++
	process, err := controlplane.StartProcess("freshbind "+r.address, r.program, r.path("log"),
		"manager", "--config="+r.path("config.yaml"), "--kubeconfig="+r.path("kubeconfig"))
	r.process, r.leaving = process, false
	return err
}

// probeTimeout is as long as a kubelet takes to give a Pod up that does not answer:
// that has to happen several times.
const probeTimeout = time.Minute

// ready asks as a kubelet does.
func (r *replica) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.at(healthPort)+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// metrics returns what the replica's /metrics says.
func (r *replica) metrics(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.at(metricsPort)+"/metrics", nil)
	if err != nil {
		return "", fmt.Errorf("ask for metrics: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("ask for metrics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}
