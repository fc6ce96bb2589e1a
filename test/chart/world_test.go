package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

var shared struct {
	once sync.Once
	w    *world
	err  error
}

func TestMain(m *testing.M) {
	fixture.Main(m, func() error {
		if shared.w == nil {
			return nil
		}
		return shared.w.close()
	})
}

// world is a control plane with agent-sandbox and cert-manager, and with two
// replicas of Freshbind for whatever Helm installs.
type world struct {
	cluster  *controlplane.Cluster
	guests   *upstream.Controllers
	helm     helm
	client   client.Client
	clients  kubernetes.Interface
	kubelet  *kubelet
	replicas []*replica
	// proxies are between the replicas and the API server.
	proxies []*controlplane.Proxy
	dir     string
	cancel  context.CancelFunc
	release []func() error
	spaces  int
	// away are the times in which Freshbind had no rights, or was losing them.
	away []span
}

// sharedWorld returns the world of all tests, which run one after the other.
// Without the right to make addresses there is none.
func sharedWorld(t *testing.T) *world {
	t.Helper()
	shared.once.Do(func() { shared.w, shared.err = newWorld(context.Background()) })
	if errors.Is(shared.err, syscall.EPERM) {
		t.Skipf("NOT TESTED: an installed chart needs an address that is not loopback's: %v", shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.w.cluster.RanOn(t, shared.w.guests.Release())
	t.Cleanup(func() {
		if t.Failed() {
			for _, r := range shared.w.replicas {
				log, _ := os.ReadFile(r.path("log"))
				t.Logf("log of %s:\n%s", r.address, log[max(0, len(log)-3000):])
			}
		}
	})
	return shared.w
}

func newWorld(ctx context.Context) (*world, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &world{cancel: cancel}
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) start(ctx context.Context) error {
	var err error
	if w.dir, err = os.MkdirTemp("", "freshbind-chart-"); err != nil {
		return err
	}
	for range 2 {
		address, remove, err := addAddress()
		if err != nil {
			return err
		}
		w.release = append(w.release, remove)
		w.replicas = append(w.replicas, &replica{address: address, dir: w.dir})
	}
	if err := w.startCluster(ctx); err != nil {
		return err
	}
	return w.startReplicas(ctx)
}

func (w *world) startCluster(ctx context.Context) error {
	crds, err := certManagerCRDs(ctx)
	if err != nil {
		return err
	}
	own, err := upstream.CRDs(ctx, "v1.0.3")
	if err != nil {
		return err
	}
	w.cluster, err = controlplane.Start(ctx, controlplane.Options{
		// The chart's Pods are fakes: the test says who stands behind the Service.
		Nodes: 2, ControllerManager: true, WithoutControllers: []string{"endpointslice-controller"},
		CRDs: append(crds, own...), APIServerFlags: []string{"--enable-aggregator-routing=true"}, AuditLog: true, Log: os.Stderr,
	})
	if err != nil {
		return err
	}
	if w.client, err = client.New(w.cluster.Config(), client.Options{}); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if w.clients, err = kubernetes.NewForConfig(w.cluster.Config()); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if w.guests, err = upstream.Start(ctx, w.cluster, upstream.Options{Version: "v1.0.3", Log: os.Stderr}); err != nil {
		return err
	}
	if err := startCertManager(ctx, w.cluster); err != nil {
		return err
	}
	go wait.UntilWithContext(ctx, w.reissue, reissuePoll)
	h, err := buildHelm()
	w.helm = h.with(w.cluster.KubeconfigPath())
	return err
}

// startReplicas prepares the replicas; install starts them.
func (w *world) startReplicas(ctx context.Context) error {
	program, err := fixture.Program()
	if err != nil {
		return err
	}
	identity, err := w.cluster.User(fixture.User, "system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
	if err != nil {
		return err
	}
	for _, r := range w.replicas {
		proxy, err := w.cluster.NewProxy(0)
		if err != nil {
			return err
		}
		w.proxies = append(w.proxies, proxy)
		r.program, r.cluster, r.identity = program, w.cluster, proxy.Config(identity)
	}
	w.kubelet = &kubelet{client: w.client, replicas: w.replicas}
	go w.kubelet.run(ctx)
	return nil
}

// close ends everything; a data race in Freshbind, and a request that its role
// did not allow, are errors.
func (w *world) close() error {
	var errs []error
	for _, r := range w.replicas {
		if w.kubelet != nil {
			errs = append(errs, w.kubelet.stop(r))
		}
		errs = append(errs, fixture.Unnoticed(r.path("log")))
	}
	w.cancel()
	if w.cluster != nil {
		errs = append(errs, w.cluster.Err(), w.cluster.Stop())
	}
	for _, release := range w.release {
		errs = append(errs, release())
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}

// install installs the chart with values, starts the replicas and waits until
// they are asked. The test's end uninstalls.
func (w *world) install(t *testing.T, values ...string) {
	t.Helper()
	w.cleanNamespace(t)
	w.installHere(t, values...)
}

// installHere is install into a namespace that may be there.
func (w *world) installHere(t *testing.T, values ...string) {
	t.Helper()
	w.helmInstall(t, values...)
	w.run(t)
}

// helmInstall installs the chart, and nobody serves yet.
func (w *world) helmInstall(t *testing.T, values ...string) {
	t.Helper()
	args := append([]string{"install", release, w.helm.chart, "--create-namespace", "--wait", helmTimeout}, values...)
	if out, err := w.helm.run(t.Context(), args...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { w.uninstall(t) })
}

// run starts the replicas and waits until they are behind the Service.
func (w *world) run(t *testing.T) {
	t.Helper()
	for _, r := range w.replicas {
		w.must(t, w.kubelet.start(t.Context(), r))
	}
	w.serving(t, len(w.replicas))
}

// uninstall leaves the hooks out: what they do is tested by itself.
func (w *world) uninstall(t *testing.T) {
	t.Helper()
	w.leaves(func() {
		ctx := context.WithoutCancel(t.Context())
		_, err := w.helm.run(ctx, "uninstall", release, "--wait", "--ignore-not-found", "--no-hooks")
		if err != nil && !w.tookTheRelease(ctx, err) {
			t.Error(err)
		}
		w.stop(t)
	})
}

var lostRecord = regexp.MustCompile(`Failed to purge the release: (release:|secrets "sh\.helm\.release\.[^"]+") not found`)

// tookTheRelease reports whether an uninstall failed because its namespace is being deleted, and took
// Helm's record of the release while Helm was at it. That record is the last thing that Helm deletes: it reads the record
// (release: not found), and then deletes it (secrets "…" not found).
func (w *world) tookTheRelease(ctx context.Context, uninstalling error) bool {
	if !lostRecord.MatchString(uninstalling.Error()) {
		return false
	}
	ns, err := w.clients.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && ns.DeletionTimestamp != nil
}

// stop ends all replicas at once, as their kubelets do when their Deployment goes.
func (w *world) stop(t *testing.T) {
	t.Helper()
	var ends errgroup.Group
	for _, r := range w.replicas {
		ends.Go(func() error { return w.kubelet.stop(r) })
	}
	w.must(t, ends.Wait())
}

// serving waits until so many replicas are behind the Service.
func (w *world) serving(t *testing.T, want int) {
	t.Helper()
	w.eventually(t, fmt.Sprintf("%d replicas serve", want), func(ctx context.Context) (string, bool) {
		slice, err := w.clients.DiscoveryV1().EndpointSlices(namespace).Get(ctx, release, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%d endpoints", len(slice.Endpoints)), len(slice.Endpoints) == want
	})
}

func (w *world) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) eventually(t *testing.T, what string, condition func(ctx context.Context) (string, bool)) {
	t.Helper()
	state := ""
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		var done bool
		state, done = condition(ctx)
		return done, nil
	})
	if err != nil {
		t.Fatalf("%s: %v; there is: %s", what, err, state)
	}
}

// pool makes a namespace with a full pool.
func (w *world) pool(t *testing.T, labels map[string]string) (*scenario.Namespace, scenario.Pool, []scenario.Member) {
	t.Helper()
	w.spaces++
	ns, err := scenario.CreateNamespace(t.Context(), w.cluster.Config(), "v1beta1", fmt.Sprintf("chart-%d", w.spaces), labels)
	w.must(t, err)
	p := scenario.Pool{Name: "python", Template: "python", Image: "sandbox:v1", Replicas: 5, Strategy: scenario.Recreate}
	w.must(t, ns.CreatePool(t.Context(), p))
	members, err := ns.WaitPool(t.Context(), p, "", within)
	w.must(t, err)
	return ns, p, members
}

// binds are tried in a namespace that enforces, once its webhooks are in force.
func (w *world) binds(t *testing.T) *binds {
	t.Helper()
	ns, _, members := w.pool(t, scenario.Enforce())
	w.must(t, ns.WaitGuarded(t.Context(), within))
	return &binds{ns: ns, member: members[0].Name, without: w.kubelet.without}
}

// patch changes a Sandbox.
func (w *world) patch(t *testing.T, ns *scenario.Namespace, name, patch string) {
	t.Helper()
	_, err := ns.Resource(upstream.Sandboxes).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(t, err)
}
