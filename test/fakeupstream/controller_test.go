package fakeupstream

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/exposition"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// lag is how late templates are where a test says "late".
	lag = time.Second
	// within bounds every wait; nothing should come near it.
	within = 10 * time.Minute
)

func TestMain(m *testing.M) { fixture.Main(m, func() error { return nil }) }

// world is a control plane with Freshbind, and with a Sandbox controller.
type world struct {
	style   Style
	cluster *controlplane.Cluster
	guard   *fixture.Freshbind
	proxy   *controlplane.Proxy
	// late is upstream's identity behind the proxy.
	late    *rest.Config
	admin   dynamic.Interface
	record  *scenario.Recording
	created int
}

func newWorld(t *testing.T, style Style) *world {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	w := &world{style: style}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	crds, err := upstream.CRDs(ctx, style.Nearest())
	must(err)
	program, err := fixture.Program()
	must(err)
	started, err := scenario.StartWorld(ctx, scenario.WorldOptions{
		Cluster: controlplane.Options{CRDs: crds, Log: os.Stderr}, Guard: fixture.Options{Program: program},
	})
	must(err)
	w.cluster, w.guard = started.Cluster, started.Guard
	t.Cleanup(func() {
		if log, err := os.ReadFile(w.guard.LogPath()); err == nil && t.Failed() {
			t.Logf("Freshbind's log ends with:\n%s", log[max(0, len(log)-10_000):])
		}
		if err := started.Stop(); err != nil {
			t.Error(err)
		}
	})
	started.RanOn(t)
	must(RunSandboxes(ctx, w.cluster, style, os.Stderr))
	w.proxy, err = w.cluster.NewProxy(0)
	must(err)
	upstreams, err := Identity(w.cluster)
	must(err)
	w.late = w.proxy.Config(upstreams)
	w.late.QPS = -1
	w.admin, err = dynamic.NewForConfig(w.cluster.Config())
	must(err)
	recording, stop := context.WithCancel(ctx)
	t.Cleanup(stop)
	w.record, err = scenario.Record(recording, w.cluster.Config())
	must(err)
	return w
}

// stage is a namespace with one pool, served by the stand-in.
type stage struct {
	*scenario.Namespace
	t    *testing.T
	w    *world
	pool scenario.Pool
	// server is the stand-in that was started last.
	server *Controller
}

// stage creates a namespace in which nothing is denied yet.
func (w *world) stage(t *testing.T) *stage {
	t.Helper()
	w.created++
	name := fmt.Sprintf("st-%d", w.created)
	ns, err := scenario.CreateNamespace(t.Context(), w.cluster.Config(), w.style.Version(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("namespace %s", name)
	p := scenario.Pool{Name: "python", Template: "python", Image: "sandbox:v1", Replicas: 3, Strategy: scenario.Recreate}
	s := &stage{Namespace: ns, t: t, w: w, pool: p}
	s.serve()
	s.must(s.CreatePool(t.Context(), s.pool))
	s.full("sandbox:v1")
	return s
}

// serve starts a stand-in for the namespace, beside those that serve it already.
func (s *stage) serve() {
	s.t.Helper()
	var err error
	s.server, err = Start(s.t.Context(), s.w.late, s.w.style, s.Name)
	s.must(err)
}

// seen waits until the stand-in knows every Sandbox as it is stored, and, where
// binds are enforced, as Freshbind has stamped it.
func (s *stage) seen(stamped bool) {
	s.t.Helper()
	s.eventually("a cache that is up to date", func(ctx context.Context) (string, bool) {
		list, err := s.Resource(upstream.Sandboxes).List(ctx, metav1.ListOptions{})
		s.must(err)
		for i := range list.Items {
			stored := &list.Items[i]
			cached, err := s.server.sandboxes.get(stored.GetName())
			if err != nil || cached.GetResourceVersion() != stored.GetResourceVersion() {
				return stored.GetName() + " is another in the cache", false
			}
			if stamped && stored.GetLabels()[settings.StampKey] == "" {
				return stored.GetName() + " has no stamp", false
			}
		}
		return "", true
	})
}

// enforce has Freshbind deny from now on.
func (s *stage) enforce() {
	s.t.Helper()
	patch := []byte(`{"metadata":{"labels":{"freshbind.dev/enforcement":"enforce"}}}`)
	namespaces := upstream.Sandboxes.WithVersion("v1")
	namespaces.Group, namespaces.Resource = "", "namespaces"
	_, err := s.w.admin.Resource(namespaces).Patch(s.t.Context(), s.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must(err)
	s.must(s.WaitGuarded(s.t.Context(), within))
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) full(image string) []scenario.Member {
	s.t.Helper()
	members, err := s.WaitPool(s.t.Context(), s.pool, image, within)
	s.must(err)
	return members
}

func (s *stage) get(claim string) *unstructured.Unstructured {
	s.t.Helper()
	sandbox, err := s.SandboxOf(s.t.Context(), claim)
	s.must(err)
	return sandbox
}

// claim creates claims at once and waits until all have what they asked for.
func (s *stage) claim(names ...string) {
	s.t.Helper()
	s.must(s.CreateClaims(s.t.Context(), s.pool, names...))
	s.must(s.WaitClaims(s.t.Context(), within, names...))
}

func (s *stage) report() *checker.Report {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	report, err := s.w.record.Judge(ctx)
	s.must(err)
	return report
}

func (s *stage) judged() (checker.Summary, []checker.Bind) {
	s.t.Helper()
	return scenario.About(s.report(), s.Name)
}

// sound checks that all claims are ready, each with a sandbox that nothing
// speaks against.
func (s *stage) sound(claims int) {
	s.t.Helper()
	sum := scenario.CheckFresh(s.t, s.report(), s.Name, claims)
	s.t.Logf("%d claims ready, %d warm, %d cold; refused so far: %v", sum.Ready, sum.Warm, sum.Cold, s.w.refused(s.t))
}

// refused counts what Freshbind denied, by operation and reason.
func (w *world) refused(t *testing.T) map[string]int {
	t.Helper()
	text, err := w.guard.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := exposition.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, s := range metrics["freshbind_bind_verdicts_total"] {
		if s.Has(`mode="enforce"`, `verdict="deny"`) {
			out[s.Labels["operation"]+" "+s.Labels["reason"]] += int(s.Value)
		}
	}
	return out
}

func (s *stage) eventually(what string, condition func(ctx context.Context) (string, bool)) {
	s.t.Helper()
	state := ""
	err := wait.PollUntilContextTimeout(s.t.Context(), 50*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		var done bool
		state, done = condition(ctx)
		return done, nil
	})
	if err != nil {
		s.t.Fatalf("%s: %v; there is: %s", what, err, strings.TrimSpace(state))
	}
}
