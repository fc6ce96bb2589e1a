package pools

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// Members from before the webhook get their stamps, so many at a time.
func TestBackfillOfStamps(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(stampsAtOnce + 10).Strategy("OnReplenish").Obj()
	objs := []*unstructured.Unstructured{pool, v2}
	for i := range stampsAtOnce + 10 {
		m := of(pool, v2, fmt.Sprintf("m%02d", i)).NoLabel(settings.StampKey).Obj()
		objs = append(objs, m, builders.MakePod(m).NoLabel(settings.StampKey).Obj())
	}
	r := newHarness(t, nil, objs...)
	writes, again := r.step(pool)
	if diff := cmp.Diff(nextStamps, again); diff != "" || len(writes) != 2*stampsAtOnce {
		t.Fatalf("%d stamps at first, want %d; comes back after (-want,+got):\n%s", len(writes), 2*stampsAtOnce, diff)
	}
	// Another leader goes on.
	r.records = map[types.NamespacedName]*poolRecord{}
	if writes, _ = r.step(pool); len(writes) != 2*10 {
		t.Errorf("%d stamps then, want %d", len(writes), 2*10)
	}
	if writes, again = r.step(pool); len(writes) > 0 || again != 0 {
		t.Errorf("%d stamps once all have one, comes back after %s", len(writes), again)
	}
	want, err := agentsandbox.RenderMember(v2)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schema.GroupVersionKind{poolKinds.Sandboxes, podKind} {
		u := object(kind)
		if err := r.client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "m00"}, u); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Hash(), u.GetLabels()[settings.StampKey]); diff != "" {
			t.Errorf("stamp of the %s (-want,+got):\n%s", kind.Kind, diff)
		}
	}
}

// storedStamp is the stamp of a Pod as it is stored.
func (r *harness) storedStamp(name string) string {
	r.t.Helper()
	u := object(podKind)
	if err := r.client.Get(r.t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, u); err != nil {
		r.t.Fatal(err)
	}
	return u.GetLabels()[settings.StampKey]
}

// A Pod whose webhook had no answer in time gets its stamp later, although its member has
// one, from what it is built from itself.
func TestStampsOfPodsThatLackThem(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).Strategy("OnReplenish").Obj()
	current := revisionOf(t, v2)
	member := func() *builders.Sandbox { return of(pool, v2, "m").Label(settings.StampKey, current) }
	pod := func() *builders.Pod { return builders.MakePod(member().Obj()).NoLabel(settings.StampKey) }
	injected := []any{
		map[string]any{"name": "sandbox", "image": "sandbox:v2"}, map[string]any{"name": "proxy", "image": "proxy:v1"},
	}
	cases := map[string]struct {
		member, pod *unstructured.Unstructured
		// cached is the Pod as the cache shows it; nil for as it is stored.
		cached *unstructured.Unstructured
		want   string
		// unread: the caches show that there is nothing to do.
		unread bool
	}{
		"its member's":            {member: member().Obj(), pod: pod().Obj(), want: current},
		"of an edited member":     {member: member().Generation(2).Obj(), pod: pod().Obj(), want: current},
		"of an older revision":    {member: member().Obj(), pod: builders.MakePod(of(pool, v1, "m").Obj()).NoLabel(settings.StampKey).Obj(), want: revisionOf(t, v1)},
		"with a container more":   {member: member().Obj(), pod: pod().Set(injected, "spec", "containers").Obj(), want: "v1-"},
		"has one":                 {member: member().Obj(), pod: pod().Label(settings.StampKey, current).Obj(), want: current, unread: true},
		"had none a moment ago":   {member: member().Obj(), pod: pod().Label(settings.StampKey, "v1-late").Obj(), cached: pod().Obj(), want: "v1-late"},
		"another one by now":      {member: member().Obj(), pod: pod().UID("new").Obj(), cached: pod().Obj()},
		"another's":               {member: member().Obj(), pod: pod().Owners(builders.ControllerRef(member().UID("another").Obj())).Obj(), unread: true},
		"being deleted":           {member: member().Obj(), pod: pod().Set([]any{"x/y"}, "metadata", "finalizers").Deleting(now).Obj(), unread: true},
		"of a member that leaves": {member: member().Set([]any{"x/y"}, "metadata", "finalizers").Deleting(now).Obj(), pod: pod().Obj(), unread: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, history{v2, v1}, pool, v2, tc.member, tc.pod)
			if tc.cached != nil {
				put, _ := storeOf(t, r)
				stored := object(poolKinds.Sandboxes)
				if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(tc.member), stored); err != nil {
					t.Fatal(err)
				}
				put(stored, tc.cached)
			}
			before := r.platform.(*inForce).gets.Load()
			r.step(pool)
			if read := r.platform.(*inForce).gets.Load() > before; read == tc.unread {
				t.Errorf("read: %t, want %t", read, !tc.unread)
			}
			got := r.storedStamp("m")
			if tc.want == "v1-" {
				if len(got) < len(current) || got == current {
					t.Errorf("stamp %q, want that of no revision", got)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("stamp (-want,+got):\n%s", diff)
			}
		})
	}
}

// A Pod that cannot be named is tried again later each time, and holds up no other.
func TestAPodThatCannotBeNamedIsTriedLater(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(stampsAtOnce + 1).Strategy("OnReplenish").Obj()
	members := make([]*unstructured.Unstructured, stampsAtOnce+1)
	objs := []*unstructured.Unstructured{pool, v2}
	for i := range members {
		members[i] = of(pool, v2, fmt.Sprintf("m%02d", i)).Label(settings.StampKey, revisionOf(t, v2)).Obj()
		objs = append(objs, members[i])
	}
	last := members[stampsAtOnce].GetName()
	unreadable := errors.New("too large")
	for name, tc := range map[string]struct {
		pod func(member *unstructured.Unstructured) *builders.Pod
		// unnamed is how many cannot be named.
		unnamed int
		err     error
		want    bool
	}{
		"unreadable": {pod: builders.MakePod, unnamed: 1, err: unreadable, want: true},
		// What owns it is no Sandbox.
		"nothing to name": {pod: func(m *unstructured.Unstructured) *builders.Pod {
			ref := builders.ControllerRef(m)
			ref.Kind = "Other"
			return builders.MakePod(m).Owners(ref)
		}, unnamed: stampsAtOnce},
	} {
		t.Run(name, func(t *testing.T) {
			all := objs
			for i, m := range members {
				pod := builders.MakePod(m)
				if i < tc.unnamed {
					pod = tc.pod(m)
				}
				all = append(all, pod.NoLabel(settings.StampKey).Obj())
			}
			r := newHarness(t, nil, all...)
			for _, m := range members[:tc.unnamed] {
				r.platform.(*inForce).refuse["Pod "+m.GetName()] = tc.err
			}
			tries := func() int { return int(r.platform.(*inForce).gets.Load()) }
			reconcileOnce := func() (time.Duration, error) {
				result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)})
				return result.RequeueAfter, err
			}
			again, err := reconcileOnce()
			if failed := err != nil; failed != tc.want || failed && !errors.Is(err, unreadable) {
				t.Fatalf("error %v, want one: %t", err, tc.want)
			}
			if !tc.want && again != nextStamps {
				t.Errorf("comes back after %s, want %s", again, nextStamps)
			}
			if r.storedStamp(last) != "" {
				t.Fatal("more were tried than may be at once")
			}
			if again, err = reconcileOnce(); err != nil || again != firstBackoff {
				t.Errorf("comes back after %s, want %s: %v", again, firstBackoff, err)
			}
			if r.storedStamp(last) == "" {
				t.Error("the last Pod waits for those that cannot be named")
			}
			before := tries()
			if again, err = reconcileOnce(); err != nil || again != firstBackoff || tries() != before {
				t.Errorf("comes back after %s, want %s, %d reads meanwhile: %v", again, firstBackoff, tries()-before, err)
			}
			clear(r.platform.(*inForce).refuse)
			r.clock.SetTime(now.Add(firstBackoff))
			if again, err = reconcileOnce(); err != nil {
				t.Fatal(err)
			}
			if tc.want {
				first := members[0].GetName()
				if again != 0 || r.storedStamp(first) == "" {
					t.Errorf("stamp %q once it can be read, comes back after %s", r.storedStamp(first), again)
				}
				// It has failed before, but not in a row.
				if _, err = reconcileOnce(); err != nil {
					t.Fatal(err)
				}
				pod := builders.MakePod(members[0]).NoLabel(settings.StampKey).Obj()
				if err := errors.Join(r.client.Delete(t.Context(), pod), r.client.Create(t.Context(), pod)); err != nil {
					t.Fatal(err)
				}
				r.platform.(*inForce).refuse["Pod "+first] = unreadable
				if _, err = reconcileOnce(); !errors.Is(err, unreadable) {
					t.Errorf("error %v, want %v", err, unreadable)
				}
				if again, err = reconcileOnce(); err != nil || again != firstBackoff {
					t.Errorf("comes back after %s, want %s: %v", again, firstBackoff, err)
				}
				return
			}
			if again != 2*firstBackoff || tries() != before+tc.unnamed {
				t.Errorf("comes back after %s, want %s; %d tries, want %d", again, 2*firstBackoff, tries()-before, tc.unnamed)
			}
		})
	}
}

// Policies hold by the label of the member, which waits for no Pod.
func TestAMemberIsStampedWhileItsPodCannotBe(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).Strategy("OnReplenish").Annotation(settings.EnforcementKey, "enforce").Obj()
	member := of(pool, v2, "m").Label(settings.EnforcementKey, "enforce").Obj()
	r := newHarness(t, nil, pool, v2, member, builders.MakePod(member).NoLabel(settings.StampKey).Obj())
	unreadable := errors.New("too large")
	r.platform.(*inForce).refuse["Pod m"] = unreadable
	key := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)}
	if _, err := r.Reconcile(t.Context(), key); !errors.Is(err, unreadable) {
		t.Fatalf("error %v, want %v", err, unreadable)
	}
	stored := object(poolKinds.Sandboxes)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(member), stored); err != nil {
		t.Fatal(err)
	}
	if err := r.client.Update(t.Context(), builders.SandboxFrom(stored).NoLabel(settings.EnforcementKey).Obj()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), key); !errors.Is(err, unreadable) {
		t.Fatalf("error %v, want %v", err, unreadable)
	}
	if got := r.writes[len(r.writes)-1]; got != "stamp Sandbox m" {
		t.Errorf("writes %v, want a stamp of the member in the end", r.writes)
	}
}

// What no cache shows is asked for: bare Pods that lack a stamp, and are the pool's own.
func TestStampsOfBarePods(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(3).APIVersion(builders.V1Alpha1).Obj()
	pod := func(name string, owner *unstructured.Unstructured) *builders.Pod {
		return builders.MakePod(of(pool, v2, name).Obj()).Owners(builders.ControllerRef(owner)).NoLabel(settings.StampKey).
			Label(agentsandbox.PodPoolLabel, agentsandbox.NameHash("python"))
	}
	another := builders.MakePool("ns", "python").UID("another").Obj()
	r := newHarness(t, history{v2}, builders.PoolFrom(pool).APIVersion(builders.V1Beta1).Obj(), v2,
		pod("late", pool).Obj(), pod("unreadable", pool).Obj(), pod("anothers", another).Obj(),
		pod("leaves", pool).Set([]any{"x/y"}, "metadata", "finalizers").Deleting(now).Obj(), pod("has-one", pool).Label(settings.StampKey, "v1-x").Obj())
	unreadable := errors.New("too large")
	r.platform.(*inForce).refuse["Pod unreadable"] = unreadable
	m := &poolRecord{unstamped: backoffs{}}
	stamps := func() map[string]string {
		out := map[string]string{}
		for _, name := range []string{"late", "unreadable", "anothers", "leaves", "has-one"} {
			out[name] = r.storedStamp(name)
		}
		return out
	}
	stamp := func(after time.Duration) (time.Duration, error) {
		s := &poolState{pool: pool, bare: true, live: true}
		s.Now = now.Add(after)
		return r.stamp(t.Context(), m, s)
	}
	want := map[string]string{"late": revisionOf(t, v2), "unreadable": "", "anothers": "", "leaves": "", "has-one": "v1-x"}
	if _, err := stamp(0); !errors.Is(err, unreadable) {
		t.Errorf("error %v, want %v", err, unreadable)
	}
	if again, err := stamp(0); err != nil || again != firstBackoff {
		t.Errorf("comes back after %s, want %s: %v", again, firstBackoff, err)
	}
	if diff := cmp.Diff(want, stamps()); diff != "" {
		t.Errorf("stamps (-want,+got):\n%s", diff)
	}
	clear(r.platform.(*inForce).refuse)
	if _, err := stamp(firstBackoff); err != nil {
		t.Fatal(err)
	}
	want["unreadable"] = want["late"]
	if diff := cmp.Diff(want, stamps()); diff != "" {
		t.Errorf("stamps (-want,+got):\n%s", diff)
	}
	writes := r.count()
	if again, err := stamp(firstBackoff); err != nil || again != 0 || r.count() != writes || len(m.unstamped) > 0 {
		t.Errorf("comes back after %s once all have one, %d writes, remembers %v: %v", again, r.count()-writes, m.unstamped, err)
	}
}
