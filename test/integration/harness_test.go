// Package integration tests Freshbind beside the real agent-sandbox on a real
// API server. What happened is judged by internal/checker from the watch history,
// never from our own labels, metrics or logs.
package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/exposition"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	release = "v1.0.3"
	// lag is how late the controllers see templates where a test says "late".
	lag = 1500 * time.Millisecond
	// within bounds every wait; nothing here should come near it.
	within = 10 * time.Minute
)

// shared are the worlds of all tests that change nothing but their namespace and,
// one after the other, delays: one for each release. Tests with several releases may
// play them side by side.
var shared struct {
	mu     sync.Mutex
	worlds map[string]func() (*world, error)
	// ends are to be called when all tests are over.
	ends []func() error
}

func TestMain(m *testing.M) {
	fixture.Main(m, func() error {
		var errs []error
		for _, end := range shared.ends {
			errs = append(errs, end())
		}
		return errors.Join(errs...)
	})
}

// world is a control plane, agent-sandbox, Freshbind, and a recording of all.
type world struct {
	*scenario.World
	record  *scenario.Recording
	dynamic dynamic.Interface
	cancel  context.CancelFunc
	// audited are the audit logs of the API servers.
	audited [2]requestLog
}

func newWorld(ctx context.Context, o scenario.WorldOptions) (*world, error) {
	var err error
	if o.Guard.Program, err = fixture.Program(); err != nil {
		return nil, err
	}
	o.Release = cmp.Or(o.Release, release)
	o.Cluster.Log = os.Stderr
	ctx, cancel := context.WithCancel(ctx)
	s, err := scenario.StartWorld(ctx, o)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &world{World: s, cancel: cancel}
	cfg := rest.CopyConfig(s.Cluster.Config())
	cfg.QPS = -1
	if w.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		return nil, err
	}
	w.record, err = scenario.Record(ctx, s.Cluster.Config())
	return w, err
}

// close ends the world; a program that ended by itself is an error.
func (w *world) close() error {
	died := w.Err()
	w.cancel()
	return errors.Join(died, w.Stop())
}

// ownWorld starts a world for one test.
func ownWorld(t *testing.T, o scenario.WorldOptions) *world {
	t.Helper()
	w, err := newWorld(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	w.RanOn(t)
	return w
}

// sharedWorld returns the world that tests share, with nothing late. They run
// one after the other.
func sharedWorld(t *testing.T) *world { t.Helper(); return releaseWorld(t, release) }

// releaseWorld is that of another release.
func releaseWorld(t *testing.T, version string) *world {
	t.Helper()
	w, err := sharedStart(version)()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.delay(upstream.SandboxTemplates, 0); w.delay(upstream.SandboxWarmPools, 0) })
	return w
}

// sharedStart starts the world of a release when it is called first.
func sharedStart(version string) func() (*world, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if start := shared.worlds[version]; start != nil {
		return start
	}
	if shared.worlds == nil {
		shared.worlds = map[string]func() (*world, error){}
	}
	shared.worlds[version] = sync.OnceValues(func() (*world, error) {
		w, err := newWorld(context.Background(), scenario.WorldOptions{Release: version})
		if err == nil {
			whenAllEnd(w.close)
		}
		return w, err
	})
	return shared.worlds[version]
}

// whenAllEnd has end called when all tests are over.
func whenAllEnd(end func() error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.ends = append(shared.ends, end)
}

func (w *world) delay(r schema.GroupResource, d time.Duration) {
	w.Controllers.Proxy().SetDelay(r.Group, r.Resource, d)
}

// namespaces numbers the namespaces of all tests.
var namespaces atomic.Int64

// stage is a namespace with its test.
type stage struct {
	*scenario.Namespace
	t *testing.T
	w *world
}

// enforced creates a namespace in which Freshbind denies.
func (w *world) enforced(t *testing.T) *stage { return w.namespace(t, scenario.Enforce()) }

func (w *world) namespace(t *testing.T, labels map[string]string) *stage {
	t.Helper()
	// Short: names of claims and namespaces end up in labels.
	name := fmt.Sprintf("it-%d", namespaces.Add(1))
	t.Logf("namespace %s", name)
	w.RanOn(t)
	ns, err := scenario.CreateNamespace(t.Context(), w.Cluster.Config(), w.Version, name, labels)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{ns, t, w}
	s.tellLastWords()
	if labels != nil {
		s.must(ns.WaitGuarded(t.Context(), within))
	}
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// pool creates a template and a pool and waits until it is full.
func (s *stage) pool(p scenario.Pool, change ...func(*builders.Template)) scenario.Pool {
	s.t.Helper()
	if p.Name == "" {
		p.Name = "python"
	}
	if p.Template == "" {
		p.Template = p.Name
	}
	if p.Image == "" {
		p.Image = "sandbox:v1"
	}
	template := builders.MakeTemplate(s.Name, p.Template).APIVersion(s.Version).Image(p.Image)
	for _, c := range change {
		c(template)
	}
	pool := builders.MakePool(s.Name, p.Name).APIVersion(s.Version).Template(p.Template).Replicas(int64(p.Replicas))
	if p.Strategy != "" {
		pool.Strategy(p.Strategy)
	}
	s.must(s.Create(s.t.Context(), template.Obj(), pool.Obj()))
	s.full(p, "")
	if p.Replicas == 0 {
		// No member shows that agent-sandbox has seen the template.
		s.labelled(p.Template)
	}
	return p
}

// labelled waits until agent-sandbox has labelled a template, which is when it has seen it.
func (s *stage) labelled(template string) {
	s.t.Helper()
	s.eventually("agent-sandbox labels the template", func(context.Context) (string, bool) {
		labels := s.get(upstream.SandboxTemplates, template).GetLabels()
		return fmt.Sprint(labels), labels[builders.LabelTemplateRef] != ""
	})
}

func (s *stage) full(p scenario.Pool, image string) []scenario.Member {
	s.t.Helper()
	members, err := s.WaitPool(s.t.Context(), p, image, within)
	s.must(err)
	return members
}

// image changes the template in place.
func (s *stage) image(p scenario.Pool, image string) {
	s.t.Helper()
	_, err := s.SetImage(s.t.Context(), p.Template, image)
	s.must(err)
}

// claim creates claims at once and waits until they are ready.
func (s *stage) claim(p scenario.Pool, names ...string) {
	s.t.Helper()
	s.must(s.CreateClaims(s.t.Context(), p, names...))
	s.must(s.WaitClaims(s.t.Context(), within, names...))
}

func (s *stage) get(r schema.GroupResource, name string) *unstructured.Unstructured {
	s.t.Helper()
	obj, err := s.Resource(r).Get(s.t.Context(), name, metav1.GetOptions{})
	s.must(err)
	return obj
}

func (s *stage) patch(r schema.GroupResource, name, patch string) {
	s.t.Helper()
	_, err := s.Resource(r).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err)
}

// eventually polls for a condition that tells how far things are.
func (s *stage) eventually(what string, condition func(ctx context.Context) (string, bool)) {
	s.t.Helper()
	state := ""
	err := wait.PollUntilContextTimeout(s.t.Context(), 50*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		var done bool
		state, done = condition(ctx)
		return done, nil
	})
	if err != nil {
		s.t.Fatalf("%s: %v; there is: %s", what, err, state)
	}
}

// report is what the judge says once everything that has happened so far has
// reached it.
func (s *stage) report() *checker.Report {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	report, err := s.w.record.Judge(ctx)
	s.must(err)
	if len(report.EventGaps) > 0 {
		s.t.Fatalf("events were lost: %v", report.EventGaps)
	}
	return report
}

// judged returns the judge's summary of the namespace.
func (s *stage) judged() (checker.Summary, []checker.Bind) {
	s.t.Helper()
	return scenario.About(s.report(), s.Name)
}

// fresh checks that all claims are ready and none has anything but a fresh
// sandbox of its own.
func (s *stage) fresh(claims int) checker.Summary {
	s.t.Helper()
	return scenario.CheckFresh(s.t, s.report(), s.Name, claims)
}

// metric returns the sum of a counter of Freshbind's over all label sets that
// have all of these labels (`verdict="deny"`).
func (w *world) metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	text, err := w.Guard.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := exposition.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return metrics.Sum(name, labels...)
}

// apiServer is what the API server counts.
func (w *world) apiServer(t *testing.T) exposition.Metrics {
	t.Helper()
	metrics, err := exposition.OfAPIServer(t.Context(), w.Cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return metrics
}

// unanswered is how many writes the API server has let pass because one of
// Freshbind's hooks, which fails open, did not answer in time.
func (w *world) unanswered(t *testing.T, hook string) float64 {
	t.Helper()
	return unanswered(w.apiServer(t), hook)
}

// turnedDown is how many writes the API server has refused because one of the hooks whose
// names end so, which fail closed, did not answer in time.
func (w *world) turnedDown(t *testing.T, hooks string) (writes float64) {
	t.Helper()
	for _, s := range w.apiServer(t)["apiserver_admission_webhook_rejection_count"] {
		if s.Has(`error_type="calling_webhook_error"`) && strings.HasSuffix(s.Labels["name"], hooks) {
			writes += s.Value
		}
	}
	return writes
}

// controllers returns a client with the identity of agent-sandbox's controllers.
func (w *world) controllers(t *testing.T) dynamic.Interface {
	t.Helper()
	cfg, err := w.Cluster.User(upstream.User, "system:serviceaccounts", "system:serviceaccounts:"+upstream.Namespace, "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
