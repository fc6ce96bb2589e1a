package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
)

// Cluster is a running control plane.
type Cluster struct {
	options   Options
	programs  map[string]string
	dir       string
	removeDir bool
	authority *authority
	certs     certFiles
	admin     keyPair

	etcdPort   port
	etcdClient *http.Client
	servers    []*apiServer

	// background ends what runs inside this process: the binder and proxies.
	background context.Context
	cancel     context.CancelFunc
	running    sync.WaitGroup
	// stopBinder ends what binds Pods; nil where nothing here does.
	stopBinder func()

	mu        sync.Mutex
	processes []*Process
	stopped   bool
	stopOnce  sync.Once
	stopErr   error
}

// Start builds what is missing, starts a cluster and returns when it is ready
// for use: API servers ready, nodes ready, CRDs served. It stops when ctx ends
// or Stop is called; its processes die with this process in any case.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	o.APIServers = max(o.APIServers, 1)
	programs, err := Tools(ctx, o.Log, o.tools()...)
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	c := &Cluster{options: o, programs: programs, dir: o.Dir, etcdClient: newEtcdClient()}
	c.background, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := c.start(ctx); err != nil {
		return nil, fmt.Errorf("start control plane: %w", errors.Join(err, c.Stop()))
	}
	context.AfterFunc(ctx, func() { _ = c.Stop() })
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.startServers(ctx); err != nil {
		return err
	}
	if err := c.InstallCRDs(ctx, c.options.CRDs...); err != nil {
		return err
	}
	if err := c.startControllers(); err != nil {
		return err
	}
	if c.options.Nodes > 0 {
		if err := c.startNodes(ctx); err != nil {
			return err
		}
	}
	return c.waitControllers(ctx)
}

// prepare makes the cluster's folder, its certificates and the admin's kubeconfig.
func (c *Cluster) prepare() error {
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "freshbind-cluster-")
		if err != nil {
			return fmt.Errorf("make cluster folder: %w", err)
		}
		c.dir, c.removeDir = dir, true
	}
	dir, err := filepath.Abs(c.dir)
	if err != nil {
		return fmt.Errorf("resolve cluster folder: %w", err)
	}
	c.dir = dir
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return fmt.Errorf("make cluster folder: %w", err)
	}
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	if c.certs, err = c.authority.write(c.dir); err != nil {
		return err
	}
	if c.admin, err = c.authority.client("admin", []string{"system:masters"}); err != nil {
		return err
	}
	if c.etcdPort, err = reservePort(); err != nil {
		return err
	}
	for i := range c.options.APIServers {
		server, err := newAPIServer(i)
		if err != nil {
			return err
		}
		c.servers = append(c.servers, server)
	}
	return c.WriteKubeconfig(c.Config(), c.KubeconfigPath())
}

// Dir is where the cluster keeps its files; logs are in its folder logs.
func (c *Cluster) Dir() string { return c.dir }

// Config is for the cluster's admin, at the first API server, without a
// client-side rate limit.
func (c *Cluster) Config() *rest.Config { return c.ServerConfig(0) }

// ServerConfig is for the cluster's admin at API server i, counted from 0.
func (c *Cluster) ServerConfig(i int) *rest.Config { return c.config(i, c.admin) }

func (c *Cluster) config(server int, pair keyPair) *rest.Config {
	return &rest.Config{
		Host:            c.servers[server].url(),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.pem, CertData: pair.cert, KeyData: pair.key},
		QPS:             -1,
	}
}

// Run starts a program that belongs to the cluster: its output goes to
// Dir/logs/<name>.log, and it ends when the cluster does at the latest.
func (c *Cluster) Run(name, path string, args ...string) (*Process, error) {
	return c.run(name, path, nil, args...)
}

// serverEnv has kube-apiserver and etcd collect garbage a quarter as often as they would
// by themselves, for half a GiB of memory: where a whole cluster has two CPUs, it is a
// seventh of the API server's work. Who has set GOGC is obeyed.
func serverEnv() []string {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	return []string{"GOGC=400"}
}

func (c *Cluster) run(name, path string, env []string, args ...string) (*Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, fmt.Errorf("start %s: the cluster is stopped", name)
	}
	p, err := startProcess(name, path, c.LogPath(name), env, args...)
	if err != nil {
		return nil, err
	}
	c.processes = append(c.processes, p)
	return p, nil
}

// PID is the process id of what Run started last as name, and whether there is one.
func (c *Cluster) PID(name string) (int, bool) {
	p := c.processOf(name)
	if p == nil {
		return 0, false
	}
	return p.PID(), true
}

// processOf is what Run started last as name; nil for none.
func (c *Cluster) processOf(name string) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.Backward(c.processes) {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// LogPath is the file with the output of the program that Run started as name.
func (c *Cluster) LogPath(name string) string { return filepath.Join(c.dir, "logs", name+".log") }

// Err tells of every program of the cluster that ended without being asked to.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, p := range c.processes {
		errs = append(errs, p.Err())
	}
	return errors.Join(errs...)
}

// Stop ends all processes and removes the cluster's folder unless Options named
// it. Only the first call does something; all return its error.
func (c *Cluster) Stop() error {
	c.stopOnce.Do(func() { c.stopErr = c.stop() })
	return c.stopErr
}

func (c *Cluster) stop() error {
	c.mu.Lock()
	c.stopped = true
	processes := slices.Clone(c.processes)
	c.mu.Unlock()

	c.cancel()
	var errs []error
	// Nothing here is worth a graceful end: nobody reads the data again. Users
	// of a server go before the server, so that their logs stay readable.
	for _, p := range slices.Backward(processes) {
		errs = append(errs, p.kill())
	}
	c.running.Wait()
	errs = append(errs, c.etcdPort.lock.unlock())
	for _, server := range c.servers {
		errs = append(errs, server.port.lock.unlock())
	}
	if c.removeDir {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}

// goRun runs f, which has to return when its context ends, until the cluster stops.
func (c *Cluster) goRun(f func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.running.Go(func() { f(c.background) })
	}
}
