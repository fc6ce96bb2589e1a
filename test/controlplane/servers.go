package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// readyPoll is how often a starting server is asked whether it is ready.
	readyPoll = 50 * time.Millisecond
	// startTimeout is generous: the machine may be busy with builds and tests.
	startTimeout = 10 * time.Minute
	// serverGrace is for requests that an API server has when it is stopped.
	serverGrace = 10 * time.Second
)

// auditPolicy keeps all stages, RequestReceived included: when a request
// arrived matters as much as what became of it.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
`

// apiServer is one of the cluster's API servers; process is nil while it is stopped.
type apiServer struct {
	name    string
	port    port
	process *Process
	// etcd is nil when the server talks to etcd itself.
	etcd *EtcdProxy
}

func newAPIServer(i int) (*apiServer, error) {
	reserved, err := reservePort()
	if err != nil {
		return nil, err
	}
	return &apiServer{name: KubeAPIServer + "-" + strconv.Itoa(i), port: reserved}, nil
}

func (s *apiServer) url() string { return "https://" + s.port.address() }

func (c *Cluster) etcdURL() string { return "http://" + c.etcdPort.address() }

func (c *Cluster) startEtcd(ctx context.Context) error {
	// A port of 0 is fine for peers: there are none, and nobody has to know it.
	peers := "http://" + loopback + ":0"
	process, err := c.run(Etcd, c.programs[Etcd], serverEnv(),
		"--data-dir="+c.etcdDir(),
		"--listen-client-urls="+c.etcdURL(), "--advertise-client-urls="+c.etcdURL(),
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers,
		"--unsafe-no-fsync", "--log-level=warn")
	if err != nil {
		return err
	}
	return waitHealthy(ctx, http.DefaultClient, c.etcdURL()+"/health", process)
}

func (c *Cluster) startServers(ctx context.Context) error {
	if c.options.AuditLog {
		if err := os.WriteFile(c.auditPolicyPath(), []byte(auditPolicy), 0o644); err != nil {
			return fmt.Errorf("write audit policy: %w", err)
		}
	}
	for i, server := range c.servers {
		if c.options.EtcdProxies {
			proxy, err := newEtcdProxy(c.etcdURL())
			if err != nil {
				return err
			}
			c.goRun(proxy.run)
			server.etcd = proxy
		}
		if err := c.launchServer(i); err != nil {
			return err
		}
	}
	for i := range c.servers {
		if err := c.waitServer(ctx, i); err != nil {
			return err
		}
	}
	return c.waitNamespaces(ctx)
}

// waitNamespaces returns when there is the default namespace: a server is ready before
// it has made those that every cluster has.
func (c *Cluster) waitNamespaces(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, readyPoll, startTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, c.Err()
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for the default namespace: %w", err)
	}
	return nil
}

// EtcdProxy is the one between API server i and etcd; nil without
// Options.EtcdProxies.
func (c *Cluster) EtcdProxy(i int) *EtcdProxy { return c.servers[i].etcd }

// StopServer ends API server i as an operator would: it may finish the requests
// it has, for at most serverGrace. All other programs of the cluster go on.
func (c *Cluster) StopServer(i int) error {
	c.mu.Lock()
	process := c.servers[i].process
	c.servers[i].process = nil
	c.mu.Unlock()
	return process.StopWithin(serverGrace)
}

// StartServer starts API server i again, at the address it had, and returns
// when it is ready. It does nothing to a server that runs.
func (c *Cluster) StartServer(ctx context.Context, i int) error {
	if !c.serverRuns(i) {
		if err := c.launchServer(i); err != nil {
			return err
		}
	}
	return c.waitServer(ctx, i)
}

func (c *Cluster) serverRuns(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers[i].process != nil
}

func (c *Cluster) launchServer(i int) error {
	server := c.servers[i]
	process, err := c.run(server.name, c.programs[KubeAPIServer], serverEnv(), c.apiServerFlags(i)...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	server.process = process
	c.mu.Unlock()
	return nil
}

func (c *Cluster) waitServer(ctx context.Context, i int) error {
	client, err := rest.HTTPClientFor(c.ServerConfig(i))
	if err != nil {
		return fmt.Errorf("make client for %s: %w", c.servers[i].name, err)
	}
	c.mu.Lock()
	process := c.servers[i].process
	c.mu.Unlock()
	return waitHealthy(ctx, client, c.servers[i].url()+"/readyz", process)
}

func (c *Cluster) apiServerFlags(i int) []string {
	etcd := c.etcdURL()
	if proxy := c.servers[i].etcd; proxy != nil {
		etcd = proxy.url()
	}
	flags := []string{
		"--etcd-servers=" + etcd,
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(c.servers[i].port.number),
		// Nobody reaches the servers through the Service "kubernetes"; without
		// these two a machine without a network could not run one.
		"--advertise-address=" + loopback,
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + c.certs.servingCert,
		"--tls-private-key-file=" + c.certs.servingKey,
		"--client-ca-file=" + c.certs.ca,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.certs.tokenKey,
		"--service-account-signing-key-file=" + c.certs.tokenKey,
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		"--profiling=false",
		// A server that is stopped ends its watches; without this it would wait for them
		// until serverGrace is over.
		"--shutdown-watch-termination-grace-period=1s",
	}
	if !c.options.ControllerManager {
		// The plugin waits for accounts that nobody would create.
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	if c.options.AuditLog {
		flags = append(flags,
			"--audit-policy-file="+c.auditPolicyPath(),
			"--audit-log-path="+c.AuditLogPath(i),
			// In MB: one file, however long the test.
			"--audit-log-maxsize=100000")
	}
	return append(flags, c.options.APIServerFlags...)
}

func (c *Cluster) auditPolicyPath() string { return filepath.Join(c.dir, "audit-policy.yaml") }

// AuditLogPath is the file with the audit events of API server i, one JSON
// document per line. It exists only with Options.AuditLog.
func (c *Cluster) AuditLogPath(i int) string {
	return filepath.Join(c.dir, "logs", "audit-"+strconv.Itoa(i)+".log")
}

// waitHealthy returns when url answers 200, or when process ended before that.
func waitHealthy(ctx context.Context, client *http.Client, url string, process *Process) error {
	last := errors.New("none")
	err := wait.PollUntilContextTimeout(ctx, readyPoll, startTimeout, true, func(ctx context.Context) (bool, error) {
		if err := process.Err(); err != nil {
			return false, err
		}
		healthy, err := get200(ctx, client, url)
		if err != nil {
			last = err
		}
		return healthy, nil
	})
	switch {
	case err == nil:
		return nil
	case wait.Interrupted(err):
		return fmt.Errorf("%s is not ready (%w), last answer: %w, log %s:\n%s",
			process.Name, err, last, process.LogPath, tail(process.LogPath))
	default:
		return err
	}
}

// get200 says whether url answers 200, and what it says otherwise.
func get200(ctx context.Context, client *http.Client, url string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, fmt.Errorf("ask for readiness: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return false, fmt.Errorf("ask for readiness: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return true, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, logTail))
	if err != nil {
		return false, fmt.Errorf("read readiness: %w", err)
	}
	return false, fmt.Errorf("%s: %s", response.Status, body)
}
