package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/recordertest"
)

const ns = "default"

// lines collects a recording in words.
type lines struct {
	mu   sync.Mutex
	all  []string
	fail error
}

func (l *lines) Write(e checker.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := fmt.Sprintf("%s %s", e.Type, e.Resource)
	if e.Object != nil {
		line = fmt.Sprintf("%s %s@%s", e.Type, e.Object.GetName(), e.Object.GetResourceVersion())
	}
	if e.Type == checker.Gap {
		line += fmt.Sprintf(" %s..%s", e.After, e.RV)
	}
	l.all = append(l.all, line)
	return l.fail
}

// received returns the lines about objects and gaps.
func (l *lines) received() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.all), func(s string) bool {
		return strings.HasPrefix(s, "SYNCED") || strings.HasPrefix(s, "PROGRESS")
	})
}

type running struct {
	*Recorder
	t    *testing.T
	ctx  context.Context
	sink *lines
	done chan error
	stop context.CancelFunc
}

func start(t *testing.T, f *recordertest.API, options Options) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	sink := &lines{}
	if options.Sink == nil {
		options.Sink = sink
	}
	r, err := New(ctx, f.Config(), options)
	if err != nil {
		t.Fatalf("new recorder: %v", err)
	}
	r.retry = wait.Backoff{Duration: time.Millisecond, Steps: 1}
	run := &running{Recorder: r, t: t, ctx: ctx, sink: sink, done: make(chan error, 1), stop: cancel}
	go func() { run.done <- r.Run(ctx) }()
	t.Cleanup(cancel)
	return run
}

func startSynced(t *testing.T, f *recordertest.API, options Options) *running {
	t.Helper()
	r := start(t, f, options)
	if err := r.WaitForSync(r.ctx); err != nil {
		t.Fatalf("wait for sync: %v", err)
	}
	return r
}

// until waits until the sink has received a line.
func (r *running) until(line string) {
	r.t.Helper()
	err := r.WaitFor(r.ctx, func(*checker.History) bool { return slices.Contains(r.sink.received(), line) })
	if err != nil {
		r.t.Fatalf("wait for %q: %v\n%s", line, err, strings.Join(r.sink.received(), "\n"))
	}
}

func (r *running) expect(want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.sink.received()); diff != "" {
		r.t.Errorf("recording (-want,+got):\n%s", diff)
	}
}

func template(image string) *unstructured.Unstructured {
	return builders.MakeTemplate(ns, "python").Image(image).Obj()
}

func requests(f *recordertest.API, parts ...string) []string {
	return slices.DeleteFunc(f.Requests(), func(s string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(s, part) })
	})
}

func TestConsistentStart(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{})
	f.Put(template("sandbox:v1"))
	f.Put(builders.MakePool(ns, "python").Obj())
	r := startSynced(t, f, Options{})
	f.Put(template("sandbox:v2"))
	r.until("MODIFIED python@103")
	r.expect("LISTED python@101", "LISTED python@102", "MODIFIED python@103")
	for _, request := range requests(f, "watch= ") {
		if !strings.Contains(request, `rv=""`) {
			t.Errorf("a LIST that need not be current: %s", request)
		}
	}
	for _, request := range requests(f, "watch=true") {
		if !strings.Contains(request, `rv="102" bookmarks=true`) {
			t.Errorf("a WATCH that does not start at the LIST, with bookmarks: %s", request)
		}
	}
	if got, want := len(requests(f, "watch= ")), 7+2; got != want {
		t.Errorf("%d lists and look-ups, want %d:\n%s", got, want, strings.Join(f.Requests(), "\n"))
	}
	if rv := r.Report().SinceRV; rv != "102" {
		t.Errorf("recording since rv %s, want 102", rv)
	}
}

func TestReadsOnly(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{})
	startSynced(t, f, Options{})
	for _, request := range f.Requests() {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("the recorder sent %s", request)
		}
	}
}

func TestResumeWithoutGap(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{})
	f.Put(template("sandbox:v1"))
	r := startSynced(t, f, Options{})
	f.Put(template("sandbox:v2"))
	r.until("MODIFIED python@102")
	before := len(requests(f, "sandboxtemplates", "watch= "))
	f.BreakWatches()
	f.Put(template("sandbox:v3"))
	f.Put(template("sandbox:v4"))
	r.until("MODIFIED python@104")
	r.expect("LISTED python@101", "MODIFIED python@102", "MODIFIED python@103", "MODIFIED python@104")
	if got := len(requests(f, "sandboxtemplates", "watch= ")); got != before {
		t.Errorf("%d lists of templates, want %d: resuming takes none", got, before)
	}
	if len(requests(f, "sandboxtemplates", `rv="102"`)) == 0 {
		t.Errorf("no watch resumed at 102:\n%s", strings.Join(f.Requests(), "\n"))
	}
}

func TestGapIsNoticed(t *testing.T) {
	for name, late := range map[string]bool{"410 as the answer": false, "410 as an event": true} {
		t.Run(name, func(t *testing.T) {
			f := recordertest.New(t, recordertest.Settings{ExpireByEvent: late})
			old := template("sandbox:v1")
			f.Put(old)
			f.Put(builders.MakeTemplate(ns, "node").Obj())
			r := startSynced(t, f, Options{})
			f.LoseEvents(func() {
				f.Put(template("sandbox:v2"))
				f.Remove(builders.MakeTemplate(ns, "node").Obj())
				f.Put(template("sandbox:v3"))
			})
			r.until("GAP sandboxtemplates 102..105")
			err := r.WaitFor(r.ctx, func(h *checker.History) bool { return len(h.EventGaps()) == len(startOrder) })
			if err != nil {
				t.Fatalf("wait for all resources to notice: %v: %v", err, r.Report().EventGaps)
			}
			f.Put(template("sandbox:v4"))
			r.until("MODIFIED python@106")
			received := slices.DeleteFunc(r.sink.received(), func(s string) bool {
				return strings.HasPrefix(s, "GAP") && !strings.Contains(s, "templates")
			})
			want := []string{"LISTED node@102", "LISTED python@101", "GAP sandboxtemplates 102..105", "LISTED python@105", "MODIFIED python@106"}
			if diff := cmp.Diff(want, received); diff != "" {
				t.Errorf("recording (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestPages(t *testing.T) {
	for name, expire := range map[string]int{"of one snapshot": 0, "a page came too late": 1} {
		t.Run(name, func(t *testing.T) {
			f := recordertest.New(t, recordertest.Settings{PageSize: 2, Expire: expire})
			for i := range 5 {
				f.Put(builders.MakeClaim(ns, fmt.Sprintf("c%d", i)).Obj())
			}
			r := startSynced(t, f, Options{})
			r.expect("LISTED c0@101", "LISTED c1@102", "LISTED c2@103", "LISTED c3@104", "LISTED c4@105")
		})
	}
}

func TestBookmarksMoveTheResumption(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{})
	r := startSynced(t, f, Options{})
	for _, resource := range checker.Resources() {
		f.Raw(string(resource), "BOOKMARK", 500, builders.MakePool("", "").RV(500).Obj().Object)
	}
	if err := r.WaitFor(r.ctx, func(h *checker.History) bool { return h.Settled("500") }); err != nil {
		t.Fatalf("wait for the bookmarks: %v", err)
	}
	f.BreakWatches()
	if err := wait.PollUntilContextCancel(r.ctx, time.Millisecond, true, func(context.Context) (bool, error) {
		return len(requests(f, "sandboxwarmpools", `rv="500"`)) > 0, nil
	}); err != nil {
		t.Errorf("no watch resumed at the bookmark:\n%s", strings.Join(f.Requests(), "\n"))
	}
}

func TestCatchUpWithQuietResources(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{})
	r := startSynced(t, f, Options{})
	rv := f.Put(builders.MakeClaim(ns, "c1").Obj())
	if err := r.CatchUp(r.ctx); err != nil {
		t.Fatalf("catching up to %s: %v", rv, err)
	}
	r.View(func(h *checker.History) {
		if !h.Settled(checker.RV(rv)) {
			t.Errorf("not settled at rv %s", rv)
		}
	})
	r.expect("ADDED c1@" + rv)
}

func TestOneNamespace(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{})
	startSynced(t, f, Options{Namespace: "prod"})
	for _, part := range []string{"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/prod/sandboxclaims", "/api/v1/namespaces/prod/pods",
		"GET /api/v1/namespaces watch= rv=\"\" bookmarks= metadata.name=prod"} {
		if len(requests(f, part)) == 0 {
			t.Errorf("no request of %s:\n%s", part, strings.Join(f.Requests(), "\n"))
		}
	}
}

func TestNamespacesAreOptional(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{Refuse: "namespaces"})
	r := startSynced(t, f, Options{})
	if r.reads(checker.Namespaces) {
		t.Error("modes are known, though namespaces cannot be read")
	}
	if err := r.CatchUp(r.ctx); err != nil {
		t.Errorf("catch up: %v", err)
	}
}

func TestNodesAreOptional(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{Refuse: "nodes"})
	r := startSynced(t, f, Options{})
	if !r.reads(checker.Namespaces) {
		t.Error("modes are not known, though it is nodes that cannot be read")
	}
	if err := r.CatchUp(r.ctx); err != nil {
		t.Errorf("catch up: %v", err)
	}
}

func TestNodesAreRecordedWithoutTheirImages(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{})
	var sink nodeEvents
	r := startSynced(t, f, Options{Namespace: ns, Sink: &sink})
	node := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n", "uid": "n"},
		"spec":   map[string]any{"taints": []any{map[string]any{"key": "k", "effect": "NoExecute"}}},
		"status": map[string]any{"images": []any{map[string]any{"names": []any{"a"}}}},
	}}
	f.Put(node)
	if err := r.CatchUp(r.ctx); err != nil {
		t.Fatal(err)
	}
	sink.mu.Lock()
	defer sink.mu.Unlock()
	if len(sink.nodes) == 0 {
		t.Fatal("no node is recorded")
	}
	for _, u := range sink.nodes {
		if _, found, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "images"); found {
			t.Error("its images are recorded")
		}
		if taints, _, _ := unstructured.NestedSlice(u.Object, "spec", "taints"); len(taints) != 1 {
			t.Errorf("its taints are %v", taints)
		}
	}
}

// nodeEvents keeps the nodes of a recording.
type nodeEvents struct {
	mu    sync.Mutex
	nodes []*unstructured.Unstructured
}

func (n *nodeEvents) Write(e checker.Event) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.Object != nil && e.Object.GetKind() == "Node" {
		n.nodes = append(n.nodes, e.Object)
	}
	return nil
}

func TestFailures(t *testing.T) {
	cases := map[string]struct {
		settings recordertest.Settings
		prepare  func(f *recordertest.API)
		options  Options
		want     string
	}{
		"claims cannot be read": {settings: recordertest.Settings{Refuse: "sandboxclaims"}, want: "list sandboxclaims"},
		"resourceVersions go backwards": {prepare: func(f *recordertest.API) {
			f.Raw("pods", "RAW", 50, builders.MakePod(builders.MakeColdStart(builders.MakeClaim(ns, "c").Obj(), template("x")).Obj()).RV(50).Obj().Object)
		}, want: "was etcd restored"},
		"a version that does not order": {prepare: func(f *recordertest.API) {
			f.Raw("sandboxtemplates", "RAW", 50, builders.MakeTemplate(ns, "x").Set("abc", "metadata", "resourceVersion").Obj().Object)
		}, want: `"abc"`},
		"the sink fails": {options: Options{Sink: &lines{fail: errors.New("disk full")}}, want: "disk full"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := recordertest.New(t, tc.settings)
			if tc.prepare != nil {
				tc.prepare(f)
			}
			r := start(t, f, tc.options)
			err := <-r.done
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want an error that names %q", err, tc.want)
			}
			if err := r.WaitFor(r.ctx, func(*checker.History) bool { return false }); !errors.Is(err, ErrStopped) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("waiting gave %v, want ErrStopped with the cause", err)
			}
		})
	}
}

func TestStop(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{})
	r := startSynced(t, f, Options{})
	r.stop()
	if err := <-r.done; err != nil {
		t.Errorf("stopped with %v, want no error", err)
	}
	if err := r.WaitFor(context.Background(), func(*checker.History) bool { return false }); !errors.Is(err, ErrStopped) {
		t.Errorf("waiting gave %v, want ErrStopped", err)
	}
}

func TestDiscovery(t *testing.T) {
	t.Run("an older API", func(t *testing.T) {
		f := recordertest.New(t, recordertest.Settings{Version: "v1alpha1"})
		r := startSynced(t, f, Options{})
		if got := r.API()[checker.Claims].Version; got != "v1alpha1" {
			t.Errorf("claims are read as %s, want v1alpha1", got)
		}
	})
	t.Run("not installed", func(t *testing.T) {
		f := recordertest.New(t, recordertest.Settings{Version: "v2"})
		_, err := New(context.Background(), f.Config(), Options{})
		want := &NotInstalledError{Host: f.Config().Host, Missing: []string{"sandboxclaims.extensions.agents.x-k8s.io",
			"sandboxes.agents.x-k8s.io", "sandboxtemplates.extensions.agents.x-k8s.io", "sandboxwarmpools.extensions.agents.x-k8s.io"}}
		var got *NotInstalledError
		if !errors.As(err, &got) {
			t.Fatalf("got %v, want a NotInstalledError", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("error (-want,+got):\n%s", diff)
		}
	})
	t.Run("no API server", func(t *testing.T) {
		f := recordertest.New(t, recordertest.Settings{})
		f.Close()
		_, err := New(context.Background(), f.Config(), Options{})
		var missing *NotInstalledError
		if err == nil || errors.As(err, &missing) {
			t.Errorf("got %v: what cannot be asked is not known to be missing", err)
		}
	})
}
