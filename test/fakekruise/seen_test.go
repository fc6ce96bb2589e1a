package fakekruise

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// lateView shows these objects whatever is written, and counts what is.
func lateView(t *testing.T, shown map[schema.GroupVersionResource][]*unstructured.Unstructured) (v *view, writes *int) {
	t.Helper()
	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	v, err := viewOf(client, Options{}, Sets, Sandboxes, Claims, pods)
	if err != nil {
		t.Fatal(err)
	}
	for r, objects := range shown {
		for _, obj := range objects {
			obj.SetNamespace("n")
			obj.SetUID(types.UID("uid-" + obj.GetName()))
			obj.SetResourceVersion("1")
			if err := v.caches[r].GetStore().Add(obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	writes = new(int)
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		*writes++
		stored := &unstructured.Unstructured{}
		switch action := action.(type) {
		case clienttesting.UpdateAction:
			stored = action.GetObject().(*unstructured.Unstructured).DeepCopy()
		case clienttesting.PatchAction:
			stored.SetName(action.GetName())
			stored.SetUID(types.UID("uid-" + action.GetName()))
		}
		stored.SetResourceVersion("2")
		return true, stored, nil
	})
	return v, writes
}

func objectOf(kind, name string, spec, status map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": Sets.GroupVersion().String(), "kind": kind, "spec": spec, "status": status}}
	u.SetName(name)
	return u
}

// memberNamed can be taken.
func memberNamed(name string, set *unstructured.Unstructured) *unstructured.Unstructured {
	box := newBox(set, nil)
	box.SetName(name)
	box.SetOwnerReferences(controlledBy(set))
	box.Object["status"] = map[string]any{
		"phase": phaseRunning, "podInfo": map[string]any{"podIP": "10.0.0.1"}, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
	}
	return box
}

// Who has written a status does nothing before its own cache shows that: a claim would
// take another member, and what was given back would be taken from whoever has it by then.
func TestStatusesAreSeenFirst(t *testing.T) {
	set := objectOf("SandboxSet", "pool", map[string]any{"template": map[string]any{}}, nil)
	set.SetUID("uid-pool")
	used := newBox(set, nil)
	used.SetName("used")
	used.Object["status"] = map[string]any{"phase": phaseRecycling}
	v, writes := lateView(t, map[schema.GroupVersionResource][]*unstructured.Unstructured{
		Sets:      {set},
		Sandboxes: {memberNamed("pool-1", set), memberNamed("pool-2", set), used},
		Claims:    {objectOf("SandboxClaim", "claim", map[string]any{"templateName": "pool"}, map[string]any{"phase": phaseClaiming})},
	})
	claims := &claimController{taker: taker{view: v, seen: newSeen()}, queue: newQueue(), expected: newSeen()}
	boxes := &boxController{view: v, queue: newQueue(), expected: newSeen()}
	for name, reconcile := range map[string]func() error{
		"a claim":         func() error { _, err := claims.reconcile(t.Context(), "n/claim"); return err },
		"what comes back": func() error { _, err := boxes.reconcile(t.Context(), "n/used"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			*writes = 0
			for turn := range 2 {
				if err := reconcile(); err != nil {
					t.Fatal(err)
				}
				// One for what is taken or comes back, and one for the status.
				if *writes != 2 {
					t.Errorf("after turn %d there were %d writes, want 2", turn, *writes)
				}
			}
		})
	}
}

// After a conflict a member is passed over until its cache shows another version, or for as
// long as whoever takes it remembers: upstream's minute, or what the options say by then.
func TestRemembers(t *testing.T) {
	day := func() time.Duration { return 24 * time.Hour }
	for name, tc := range map[string]struct {
		remembers func() time.Duration
		after     time.Duration
		version   string
		want      bool
	}{
		"within upstream's minute":               {after: time.Minute},
		"after it":                               {after: time.Minute + 1, want: true},
		"another version":                        {version: "2", want: true},
		"within a day":                           {remembers: day, after: 24 * time.Hour},
		"after it as well":                       {remembers: day, after: 24*time.Hour + 1, want: true},
		"another version, and whoever remembers": {remembers: day, version: "2", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			set := objectOf("SandboxSet", "pool", map[string]any{"template": map[string]any{}}, nil)
			set.SetUID("uid-pool")
			box := memberNamed("pool-1", set)
			v, _ := lateView(t, map[schema.GroupVersionResource][]*unstructured.Unstructured{Sets: {set}, Sandboxes: {box}})
			client, _ := v.client.(*fake.FakeDynamicClient)
			client.PrependReactor("update", Sandboxes.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewConflict(Sandboxes.GroupResource(), "pool-1", nil)
			})
			v.options.Remembers = tc.remembers
			now := clocktesting.NewFakePassiveClock(time.Now())
			taker := taker{view: v, seen: newSeen()}
			taker.seen.clock = now
			request := Request{Namespace: "n", Set: "pool", User: "user", OnlyStock: true}
			if _, _, err := taker.take(t.Context(), request); !apierrors.IsConflict(err) {
				t.Fatalf("the first try: %v, want a conflict", err)
			}
			now.SetTime(now.Now().Add(tc.after))
			if tc.version != "" {
				box.SetResourceVersion(tc.version)
			}
			if _, err := taker.pick(request); (err == nil) != tc.want {
				t.Errorf("a second look: %v, want that it finds the member: %t", err, tc.want)
			}
		})
	}
}
