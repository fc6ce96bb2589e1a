// Package upstream runs the unmodified agent-sandbox controllers, built from
// the Go module of a release, against a control plane of package controlplane:
// with the CRDs and the RBAC rules of that release, under upstream's own
// service account, and through a proxy that can make their caches late.
package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/freshbind/freshbind/test/controlplane"
)

// The identity under which every release runs its controllers, all four of them.
const (
	Namespace      = "agent-sandbox-system"
	serviceAccount = "agent-sandbox-controller"
	// User is what the API server calls that identity.
	User = "system:serviceaccount:" + Namespace + ":" + serviceAccount
)

const (
	module  = "sigs.k8s.io/agent-sandbox"
	program = module + "/cmd/agent-sandbox-controller"
)

// The resources whose watches may be delayed.
var (
	Sandboxes        = schema.GroupResource{Group: "agents.x-k8s.io", Resource: "sandboxes"}
	SandboxClaims    = schema.GroupResource{Group: "extensions.agents.x-k8s.io", Resource: "sandboxclaims"}
	SandboxTemplates = schema.GroupResource{Group: "extensions.agents.x-k8s.io", Resource: "sandboxtemplates"}
	SandboxWarmPools = schema.GroupResource{Group: "extensions.agents.x-k8s.io", Resource: "sandboxwarmpools"}
)

const (
	// syncTimeout bounds the time until all controllers work.
	syncTimeout = 10 * time.Minute
	syncPoll    = 50 * time.Millisecond
	// workersStarted is what controller-runtime logs when the caches of a
	// controller are synced (pkg/internal/controller/controller.go).
	workersStarted = "Starting workers"
	// controllerCount: sandboxes, claims, templates, pools.
	controllerCount = 4
	// noMetrics takes the fixed port of v0.1.0's metrics away, which reads no
	// flag for it and falls back to controller-runtime's default (v0.22.2,
	// pkg/metrics/server/server.go). The source stays as it is.
	noMetrics = "-X sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=0"
)

// release is what differs between releases when they are run.
type release struct {
	// version is also the name of the folder with the release's go.mod.
	version string
	// apiVersion is the version in which the release itself reads and writes.
	apiVersion string
	args       []string
	// crds are the files with its CRDs; helm/crds when empty.
	crds string
	// controllers is how many it has; controllerCount when 0.
	controllers int
	ldflags     []string
}

// v0.5 serves its CRD conversion itself; without a Service to reach it by, the
// CRDs are installed without conversion and the server is turned off.
var releases = []release{
	{version: "v1.0.3", apiVersion: "v1beta1"},
	{version: "v0.5.6", apiVersion: "v1beta1", args: []string{"--enable-webhook=false"}},
	{version: "v0.5.5", apiVersion: "v1beta1", args: []string{"--enable-webhook=false"}},
	{version: "v0.4.6", apiVersion: "v1alpha1"},
}

// oldReleases have bare Pods as the members of their pools, no Sandboxes.
var oldReleases = []release{
	{version: "v0.2.1", apiVersion: "v1alpha1", crds: "k8s/crds/*.yaml"},
	{
		version: "v0.1.0", apiVersion: "v1alpha1", crds: "k8s/crds/*.yaml",
		controllers: 3, ldflags: []string{noMetrics},
	},
}

// moreReleases can be run, too, and differ so little from one above that make matrix
// alone runs them.
var (
	moreReleases = []release{
		{version: "v0.5.3", apiVersion: "v1beta1", args: []string{"--enable-webhook=false"}},
	}
	moreOldReleases = []release{
		{version: "v0.1.1", apiVersion: "v1alpha1", crds: "k8s/crds/*.yaml", controllers: 3},
	}
)

// Releases lists the agent-sandbox releases that can be run and whose members
// are Sandboxes, newest first.
func Releases() []string {
	return versionsOf(releases)
}

// OldReleases lists the agent-sandbox releases that can be run and whose
// members are bare Pods, newest first.
func OldReleases() []string { return versionsOf(oldReleases) }

// AllReleases lists every release that is a Go module, oldest first.
func AllReleases() []string { return slices.Sorted(slices.Values(versionsOf(allReleases()))) }

// BarePods says whether the members of a release's pools are bare Pods.
func BarePods(version string) bool {
	return slices.Contains(versionsOf(slices.Concat(oldReleases, moreOldReleases)), version)
}

func allReleases() []release {
	return slices.Concat(releases, moreReleases, oldReleases, moreOldReleases)
}

func versionsOf(list []release) []string {
	versions := make([]string, 0, len(list))
	for _, r := range list {
		versions = append(versions, r.version)
	}
	return versions
}

// APIVersion is the version of both API groups in which a release works.
func APIVersion(version string) (string, error) {
	r, err := find(version)
	return r.apiVersion, err
}

func find(version string) (release, error) {
	all := allReleases()
	i := slices.IndexFunc(all, func(r release) bool { return r.version == version })
	if i < 0 {
		return release{}, fmt.Errorf("no agent-sandbox %q here: use one of %s", version, strings.Join(versionsOf(all), ", "))
	}
	return all[i], nil
}

func (r release) moduleDir() (string, error) {
	root, err := controlplane.RepositoryDir()
	return filepath.Join(root, "test", "upstream", r.version), err
}

// Build returns the path of a release's controller, built as
// controlplane.BuildTool does.
func Build(ctx context.Context, log io.Writer, version string) (string, error) {
	r, err := find(version)
	if err != nil {
		return "", err
	}
	dir, err := r.moduleDir()
	if err != nil {
		return "", err
	}
	return controlplane.BuildTool(ctx, log, dir, program, r.ldflags...)
}

// Options say which controllers run and how late they see things.
type Options struct {
	// Version is one of Releases or OldReleases.
	Version string
	// Delay makes the controllers' watches of a resource late from the start.
	Delay map[schema.GroupResource]time.Duration
	// Log receives progress of a build; nil means silence.
	Log io.Writer
	// Args are further flags of the controller; they win.
	Args []string
}

// Controllers are running controllers of one release.
type Controllers struct {
	release string
	process *controlplane.Process
	proxy   *controlplane.Proxy
}

// Start installs a release's CRDs and RBAC rules, runs its controllers, and
// returns when their caches are synced. They end with the cluster.
func Start(ctx context.Context, c *controlplane.Cluster, o Options) (*Controllers, error) {
	r, err := find(o.Version)
	if err != nil {
		return nil, fmt.Errorf("start agent-sandbox: %w", err)
	}
	path, err := Build(ctx, o.Log, o.Version)
	if err != nil {
		return nil, fmt.Errorf("start agent-sandbox %s: %w", o.Version, err)
	}
	if err := install(ctx, c, r); err != nil {
		return nil, fmt.Errorf("start agent-sandbox %s: %w", o.Version, err)
	}
	controllers, err := run(ctx, c, r, path, o)
	if err != nil {
		return nil, fmt.Errorf("start agent-sandbox %s: %w", o.Version, err)
	}
	return controllers, nil
}

func run(ctx context.Context, c *controlplane.Cluster, r release, path string, o Options) (*Controllers, error) {
	owner, err := c.User(User, "system:serviceaccounts", "system:serviceaccounts:"+Namespace, "system:authenticated")
	if err != nil {
		return nil, err
	}
	proxy, err := c.NewProxy(0)
	if err != nil {
		return nil, err
	}
	for resource, delay := range o.Delay {
		proxy.SetDelay(resource.Group, resource.Resource, delay)
	}
	name := "agent-sandbox-" + r.version
	kubeconfig := filepath.Join(c.Dir(), "kubeconfig-"+name)
	if err := c.WriteKubeconfig(proxy.Config(owner), kubeconfig); err != nil {
		return nil, errors.Join(err, proxy.Close())
	}
	args := slices.Concat([]string{
		"--kubeconfig=" + kubeconfig,
		"--extensions",
		"--leader-elect=false",
		"--metrics-bind-address=0",
		"--health-probe-bind-address=0",
	}, r.args, o.Args)
	// A restart appends to the log of the run before.
	earlier := count(c.LogPath(name))
	process, err := c.Run(name, path, args...)
	if err != nil {
		return nil, errors.Join(err, proxy.Close())
	}
	controllers := &Controllers{release: r.version, process: process, proxy: proxy}
	if err := controllers.waitSynced(ctx, earlier+cmp.Or(r.controllers, controllerCount)); err != nil {
		return nil, errors.Join(err, controllers.Stop())
	}
	return controllers, nil
}

// Release is the one of Releases or OldReleases that runs.
func (c *Controllers) Release() string { return c.release }

// waitSynced returns when the log tells of so many started controllers. Nothing
// else shows it from outside: a probe object would be one more sandbox in the
// cluster under test.
func (c *Controllers) waitSynced(ctx context.Context, started int) error {
	err := wait.PollUntilContextTimeout(ctx, syncPoll, syncTimeout, true, func(context.Context) (bool, error) {
		return count(c.LogPath()) >= started, c.process.Err()
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("controllers did not sync, see %s: %w", c.LogPath(), err)
	}
	return err
}

// count is how many controllers have started according to a log.
func count(log string) int {
	content, err := os.ReadFile(log)
	if err != nil {
		return 0
	}
	return bytes.Count(content, []byte(workersStarted))
}

// Proxy is between the controllers and the API server; their delays can be
// changed there while they run.
func (c *Controllers) Proxy() *controlplane.Proxy { return c.proxy }

// LogPath is the file with the controllers' log.
func (c *Controllers) LogPath() string { return c.process.LogPath }

// Stop ends the controllers. CRDs, RBAC rules and all objects stay.
func (c *Controllers) Stop() error {
	return errors.Join(c.process.Stop(), c.proxy.Close())
}
