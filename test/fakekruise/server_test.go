package fakekruise

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// pool is a server's view of a SandboxSet, and what the API server answers.
type pool struct {
	server *Server

	mu sync.Mutex
	// puts are the members that somebody tried to take, creates the Sandboxes that somebody
	// tried to create.
	puts    []string
	creates int
}

// newPool has members of these revisions. put and create answer what is sent, unless nil.
func newPool(t *testing.T, updateRevision string, revisions []string, put, create error) *pool {
	t.Helper()
	p := &pool{}
	set := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "box:1"}}}}},
	}}
	set.SetAPIVersion(Sets.GroupVersion().String())
	set.SetKind("SandboxSet")
	set.SetNamespace("n")
	set.SetName("pool")
	set.SetUID("uid-pool")
	_ = unstructured.SetNestedField(set.Object, updateRevision, "status", "updateRevision")
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		Sets: "SandboxSetList", Sandboxes: "SandboxList", Templates: "SandboxTemplateList",
	})
	stored := func(of schema.GroupVersionResource, obj *unstructured.Unstructured) {
		if err := client.Tracker().Create(of, obj, obj.GetNamespace()); err != nil {
			t.Fatal(err)
		}
	}
	stored(Sets, set)
	for i, hash := range revisions {
		box := memberNamed(fmt.Sprintf("pool-%d", i), set)
		box.SetUID(types.UID(box.GetName()))
		box.SetResourceVersion("1")
		label(box, labelHash, hash)
		stored(Sandboxes, box)
	}
	client.PrependReactor("update", Sandboxes.Resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		box, _ := action.(clienttesting.UpdateAction).GetObject().(*unstructured.Unstructured)
		p.puts = append(p.puts, box.GetName())
		return put != nil, nil, put
	})
	client.PrependReactor("create", Sandboxes.Resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.creates++
		box, _ := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
		box.SetName("cold")
		box.Object["status"] = map[string]any{"phase": phaseRunning, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
		return create != nil, nil, create
	})
	// On a busy machine the minute of upstream's could be over before the tries are.
	options := Options{Pace: 1000, Remembers: func() time.Duration { return 1000 * time.Hour }}
	v, err := viewOf(client, options, Sets, Sandboxes, Templates)
	if err == nil {
		p.server, err = v.server(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func times(n int, hash string) []string { return slices.Repeat([]string{hash}, n) }

// What the server does after each answer, as its own code was seen to do: 20 old members and
// one that is current, and updateRevision late.
func TestAnswers(t *testing.T) {
	gr, conflict := Sandboxes.GroupResource(), &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 409, Reason: metav1.StatusReasonConflict}}
	for name, tc := range map[string]struct {
		put, create error
		members     []string
		onlyStock   bool
		puts        int
		creates     int
		ok          bool
	}{
		"taken":                      {members: times(21, "old"), puts: 1, ok: true},
		"conflict":                   {put: conflict, members: times(21, "old"), puts: 5},
		"already exists":             {put: apierrors.NewAlreadyExists(gr, "x"), members: times(21, "old"), puts: 1},
		"not found":                  {put: apierrors.NewNotFound(gr, "x"), members: times(21, "old"), puts: 1},
		"forbidden":                  {put: apierrors.NewForbidden(gr, "x", nil), members: times(21, "old"), puts: 1},
		"internal error":             {put: apierrors.NewInternalError(fmt.Errorf("x")), members: times(21, "old"), puts: 1},
		"three old, then a create":   {put: conflict, members: times(3, "old"), puts: 3, creates: 1, ok: true},
		"no stock":                   {creates: 1, ok: true},
		"no stock, and none created": {onlyStock: true},
		"a create that is refused":   {create: conflict, creates: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, "old", tc.members, tc.put, tc.create)
			got, err := p.server.Create(t.Context(), Request{Namespace: "n", Set: "pool", User: "user", OnlyStock: tc.onlyStock})
			if (err == nil) != tc.ok || len(p.puts) != tc.puts || p.creates != tc.creates || tc.ok && got.Created != (tc.creates > 0) {
				t.Errorf("%d PUTs, %d CREATEs, %v; want %d, %d, and that it works: %t", len(p.puts), p.creates, err, tc.puts, tc.creates, tc.ok)
			}
			slices.Sort(p.puts)
			if len(slices.Compact(p.puts)) != tc.puts {
				t.Errorf("some member was tried twice: %q", p.puts)
			}
		})
	}
}

// The server waits 1, 2, 4 and 8 seconds between its five tries, and 16 for nothing.
func TestPauses(t *testing.T) {
	conflict := apierrors.NewConflict(Sandboxes.GroupResource(), "x", nil)
	p := newPool(t, "old", times(9, "old"), conflict, nil)
	got, err := p.server.Create(t.Context(), Request{Namespace: "n", Set: "pool", User: "user"})
	if least := p.server.taker.options.wait(31 * time.Second); err == nil || got.Tries != 5 || got.Took < least {
		t.Errorf("%d tries in %s, %v; want 5 in %s at least, and an error", got.Tries, got.Took, err, least)
	}
}

// Members of the revision in force come first, and others when there are none. Only 100 are
// looked at, so that a current one among more old ones can be missed.
func TestPicks(t *testing.T) {
	for range 20 {
		p := newPool(t, "new", append(times(20, "old"), "new"), nil, nil)
		if got, err := p.server.Create(t.Context(), Request{Namespace: "n", Set: "pool", User: "user"}); err != nil || got.Sandbox.GetName() != "pool-20" {
			t.Fatalf("got %v, %v, want the current one", got.Sandbox, err)
		}
	}
	p := newPool(t, "new", times(3, "old"), nil, nil)
	if got, err := p.server.Create(t.Context(), Request{Namespace: "n", Set: "pool", User: "user"}); err != nil || got.Created {
		t.Errorf("got %v, %v, want an old one", got, err)
	}
	missed := false
	for try := 0; try < 50 && !missed; try++ {
		p := newPool(t, "new", append(times(150, "old"), "new"), nil, nil)
		got, err := p.server.Create(t.Context(), Request{Namespace: "n", Set: "pool", User: "user"})
		if err != nil {
			t.Fatal(err)
		}
		missed = got.Sandbox.GetLabels()[labelHash] == "old"
	}
	if !missed {
		t.Error("the current one among 150 old ones was never missed")
	}
}
