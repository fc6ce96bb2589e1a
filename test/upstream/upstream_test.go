package upstream

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/freshbind/freshbind/test/controlplane"
)

const (
	testNamespace = "default"
	poll          = 50 * time.Millisecond
	timeout       = 10 * time.Minute
)

func TestReleases(t *testing.T) {
	cases := map[string]struct {
		// claim refers to the pool "pool" of the template "template".
		claim map[string]any
		delay map[schema.GroupResource]time.Duration
	}{
		"v1.0.3": {
			claim: map[string]any{"warmPoolRef": map[string]any{"name": "pool"}},
			delay: map[schema.GroupResource]time.Duration{SandboxTemplates: time.Second},
		},
		"v0.5.6": {claim: map[string]any{"warmPoolRef": map[string]any{"name": "pool"}}},
		"v0.5.5": {claim: map[string]any{"warmPoolRef": map[string]any{"name": "pool"}}},
		"v0.4.6": {claim: map[string]any{
			"sandboxTemplateRef": map[string]any{"name": "template"}, "warmpool": "pool",
		}},
	}
	tested := []string{}
	for version := range cases {
		tested = append(tested, version)
	}
	slices.Sort(tested)
	known := slices.Sorted(slices.Values(Releases()))
	if diff := cmp.Diff(known, tested); diff != "" {
		t.Fatalf("releases without a test (-want,+got):\n%s", diff)
	}
	for _, version := range Releases() {
		tc := cases[version]
		t.Run(version, func(t *testing.T) {
			w := newWorld(t, Options{Version: version, Delay: tc.delay})
			w.create(SandboxTemplates, "SandboxTemplate", "template", map[string]any{
				"podTemplate": map[string]any{"spec": map[string]any{
					"containers": []any{map[string]any{"name": "c", "image": "sandbox:v1"}},
				}},
			})
			w.create(SandboxWarmPools, "SandboxWarmPool", "pool", map[string]any{
				"replicas": int64(3), "sandboxTemplateRef": map[string]any{"name": "template"},
			})
			members := w.members(3)
			w.create(SandboxClaims, "SandboxClaim", "claim", tc.claim)
			if sandbox := w.sandboxOf("claim"); !slices.Contains(members, sandbox) {
				t.Errorf("claim holds sandbox %q, want one of the pool's %v", sandbox, members)
			}
		})
	}
}

func TestPins(t *testing.T) {
	for _, r := range allReleases() {
		t.Run(r.version, func(t *testing.T) {
			dir, err := r.moduleDir()
			if err != nil {
				t.Fatal(err)
			}
			pinned, err := controlplane.ModuleVersion(t.Context(), dir, module)
			if err != nil {
				t.Fatal(err)
			}
			if pinned != r.version {
				t.Errorf("%s pins %s %s", filepath.Join(dir, "go.mod"), module, pinned)
			}
		})
	}
}

func TestUnknownRelease(t *testing.T) {
	_, err := Build(t.Context(), os.Stderr, "v0.0.1")
	want := `no agent-sandbox "v0.0.1" here: use one of v1.0.3, v0.5.6, v0.5.5, v0.4.6, v0.5.3, v0.2.1, v0.1.0, v0.1.1`
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// world is a cluster with the controllers of one release.
type world struct {
	t       *testing.T
	client  dynamic.Interface
	version string
	// err says what is wrong with the programs, if anything.
	err func() error
}

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	c, err := controlplane.Start(t.Context(), controlplane.Options{Nodes: 2, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	o.Log = os.Stderr
	controllers, err := Start(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if log, err := os.ReadFile(controllers.LogPath()); t.Failed() && err == nil {
			t.Logf("%s", log)
		}
	})
	version, err := APIVersion(o.Version)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, client: client, version: version, err: c.Err}
}

func (w *world) resource(r schema.GroupResource) dynamic.ResourceInterface {
	return w.client.Resource(r.WithVersion(w.version)).Namespace(testNamespace)
}

func (w *world) create(r schema.GroupResource, kind, name string, spec map[string]any) {
	w.t.Helper()
	o := object(schema.GroupVersion{Group: r.Group, Version: w.version}.String(), kind, testNamespace, name)
	o.Object["spec"] = spec
	if _, err := w.resource(r).Create(w.t.Context(), o, metav1.CreateOptions{}); err != nil {
		w.t.Fatalf("create %s %s: %v", kind, name, err)
	}
}

// members waits for so many ready sandboxes, and until the controllers have seen them,
// and returns their names.
func (w *world) members(want int) []string {
	w.t.Helper()
	var names []string
	w.eventually("ready pool members", func(ctx context.Context) (bool, error) {
		list, err := w.resource(Sandboxes).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		names = nil
		for i := range list.Items {
			if ready(&list.Items[i]) {
				names = append(names, list.Items[i].GetName())
			}
		}
		pool, err := w.resource(SandboxWarmPools).Get(ctx, "pool", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		seen, _, err := unstructured.NestedInt64(pool.Object, "status", "readyReplicas")
		return len(names) == want && seen == int64(want), err
	})
	return names
}

// sandboxOf waits until a claim is ready and returns the name of its sandbox.
func (w *world) sandboxOf(claim string) string {
	w.t.Helper()
	var name string
	w.eventually("ready claim "+claim, func(ctx context.Context) (bool, error) {
		live, err := w.resource(SandboxClaims).Get(ctx, claim, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		name, _, err = unstructured.NestedString(live.Object, "status", "sandbox", "name")
		return ready(live), err
	})
	return name
}

func (w *world) eventually(what string, condition func(context.Context) (bool, error)) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), poll, timeout, true, func(ctx context.Context) (bool, error) {
		if err := w.err(); err != nil {
			return false, err
		}
		return condition(ctx)
	})
	if err != nil {
		w.t.Fatalf("wait for %s: %v", what, err)
	}
}

func ready(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		c, ok := condition.(map[string]any)
		return ok && c["type"] == "Ready" && c["status"] == "True"
	})
}
