package recreate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

var poolKinds = PoolKinds{
	Pools:     schema.GroupVersionKind{Group: builders.GroupExtensions, Version: builders.V1Beta1, Kind: "SandboxWarmPool"},
	Templates: schema.GroupVersionKind{Group: builders.GroupExtensions, Version: builders.V1Beta1, Kind: "SandboxTemplate"},
	Sandboxes: schema.GroupVersionKind{Group: builders.GroupCore, Version: builders.V1Beta1, Kind: "Sandbox"},
}

// history knows revisions by the templates that had them.
type history []*unstructured.Unstructured

func (h history) Revisions(context.Context, *unstructured.Unstructured) ([]agentsandbox.Recorded, error) {
	var out []agentsandbox.Recorded
	for _, t := range h {
		b, err := agentsandbox.RenderMember(t)
		if err != nil {
			return nil, err
		}
		out = append(out, agentsandbox.Recorded{Hash: b.Hash(), Template: t, Rendered: b})
	}
	return out, nil
}

// inForce is a platform whose stored objects can be others than those cached.
type inForce struct {
	agentsandbox.Platform
	stored client.Reader
}

func (p *inForce) Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error) {
	kind := poolKinds.Pools
	if gr == agentsandbox.Templates {
		kind = poolKinds.Templates
	}
	u := object(kind)
	if err := p.stored.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, u); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return u, nil
}

// rig is a controller of pools on fake objects.
type rig struct {
	*Pools
	t      *testing.T
	client client.WithWatch
	clock  *clocktesting.FakePassiveClock
	writes []string
	// refuse makes writes with that verb fail.
	refuse map[string]error
}

func newRig(t *testing.T, known history, objs ...*unstructured.Unstructured) *rig {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, k := range []schema.GroupVersionKind{poolKinds.Pools, poolKinds.Templates, poolKinds.Sandboxes, podKind, nodeKind} {
		scheme.AddKnownTypeWithName(k, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(listOf(k), &unstructured.UnstructuredList{})
	}
	r := &rig{t: t, clock: clocktesting.NewFakePassiveClock(now), refuse: map[string]error{}}
	b := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(object(poolKinds.Sandboxes), byPool, poolUIDs).WithIndex(object(podKind), byNode, nodeNames)
	for _, o := range objs {
		b = b.WithObjects(o.DeepCopy())
	}
	r.client = b.WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			var o client.DeleteOptions
			o.ApplyOptions(opts)
			if o.Preconditions == nil || o.Preconditions.UID == nil || o.Preconditions.ResourceVersion == nil {
				t.Errorf("delete of %s without preconditions", obj.GetName())
			}
			r.writes = append(r.writes, "delete "+obj.GetName())
			if err := r.refuse["delete"]; err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			body, err := patch.Data(obj)
			if err != nil {
				return err
			}
			verb := "publish"
			switch {
			case strings.Contains(string(body), builders.LabelTemplateRef+`":null`):
				verb = "hide"
			case strings.Contains(string(body), builders.LabelTemplateRef):
				verb = "show"
			case strings.Contains(string(body), platform.StampKey):
				verb = "stamp " + obj.GetObjectKind().GroupVersionKind().Kind
			}
			r.writes = append(r.writes, verb+" "+obj.GetName())
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	r.Pools = &Pools{
		platform: &inForce{Platform: agentsandbox.Platform{History: known, DefaultStrategy: freshness.OnReplenish}, stored: r.client},
		enforced: func(context.Context, string, string) (bool, error) { return true, nil },
		leads:    func() bool { return true },
		view:     &View{cache: r.client, lists: r.client, kinds: poolKinds},
		client:   r.client, refused: &Refused{hints: make(chan hint, 100)},
		budget: NewBudget(DefaultBudget, r.clock), events: &events.FakeRecorder{}, clock: r.clock, memory: map[types.NamespacedName]*memory{},
	}
	return r
}

// step reconciles a pool, and returns what was written to members, sorted.
func (r *rig) step(pool *unstructured.Unstructured) (writes []string, again time.Duration) {
	r.t.Helper()
	r.writes = nil
	result, err := r.Reconcile(r.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, w := range r.writes {
		if !strings.HasPrefix(w, "publish") {
			writes = append(writes, w)
		}
	}
	slices.Sort(writes)
	return writes, result.RequeueAfter
}

func (r *rig) said(pool *unstructured.Unstructured, key string) string {
	r.t.Helper()
	u := object(poolKinds.Pools)
	if err := r.client.Get(r.t.Context(), client.ObjectKeyFromObject(pool), u); err != nil {
		r.t.Fatal(err)
	}
	return u.GetAnnotations()[key]
}

func (r *rig) noted() []string {
	var out []string
	for {
		select {
		case h := <-r.refused.hints:
			out = append(out, h.Name)
		default:
			slices.Sort(out)
			return out
		}
	}
}

var (
	v1 = builders.MakeTemplate("ns", "python").Image("sandbox:v1").RV(1).Obj()
	v2 = builders.MakeTemplate("ns", "python").Image("sandbox:v2").RV(2).Generation(2).Obj()
)

// of makes a ready member of a pool, built from a template.
func of(pool, template *unstructured.Unstructured, name string) *builders.Sandbox {
	return builders.MakeMember(pool, template).Name(name).Created(now.Add(-time.Hour)).Ready(true).Label(platform.StampKey, "v1-x")
}

func ofAll(pool, template *unstructured.Unstructured, n int) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for i := range n {
		out = append(out, of(pool, template, fmt.Sprintf("m%02d", i)).Obj())
	}
	return out
}

func TestKeepingAPoolCurrent(t *testing.T) {
	poolOf := func(strategy string) *builders.Pool {
		return builders.MakePool("ns", "python").Replicas(3).Strategy(strategy)
	}
	recreate, keep := poolOf("Recreate").Obj(), poolOf("OnReplenish").Obj()
	rolling := builders.PoolFrom(keep).Annotation("freshbind.dev/rollout-strategy", "RollingUpdate").Obj()
	byAnnotation := builders.PoolFrom(keep).Annotation("freshbind.dev/rollout-strategy", "Recreate").Obj()
	other := builders.MakeTemplate("ns", "other").Image("sandbox:v2").Obj()
	switched := builders.PoolFrom(keep).Template("other").Obj()
	restarted := builders.PoolFrom(recreate).Annotation("freshbind.dev/restarted-at", "2026-01-01T11:30:00Z").Obj()
	node := func(taint bool) *unstructured.Unstructured {
		n := object(nodeKind)
		n.SetName("node-1")
		if taint {
			n.Object["spec"] = map[string]any{"taints": []any{map[string]any{"key": "gone", "effect": "NoExecute"}}}
		}
		return n
	}
	on := func(member *unstructured.Unstructured) *unstructured.Unstructured {
		return builders.MakePod(member).Stored("node-1").Obj()
	}
	type want struct {
		Writes []string
		Noted  []string
		State  string
		Admit  string
	}
	cases := map[string]struct {
		pool *unstructured.Unstructured
		objs []*unstructured.Unstructured
		want want
	}{
		"nothing to do": {recreate, append(ofAll(recreate, v2, 3), v2), want{State: "Complete"}},
		"recreate": {
			recreate, []*unstructured.Unstructured{v2, of(recreate, v1, "a").Obj(), of(recreate, v2, "b").Obj(), of(recreate, v1, "c").Obj()},
			want{Writes: []string{"delete a", "delete c"}, State: "Progressing"},
		},
		"recreate by annotation": {
			byAnnotation, append(ofAll(keep, v1, 2), v2), want{Writes: []string{"delete m00", "delete m01"}, State: "Progressing"},
		},
		"on replenish": {keep, append(ofAll(keep, v1, 3), v2), want{State: "Progressing"}},
		"pool switched to another template: under every strategy": {
			switched, append(ofAll(keep, v2, 2), v2, other), want{Writes: []string{"delete m00", "delete m01"}, State: "Progressing"},
		},
		"used before": {
			keep, []*unstructured.Unstructured{v2, of(keep, v2, "used").Annotation(platform.BoundToKey, "x").Obj()},
			want{Writes: []string{"delete used"}, State: "Progressing"},
		},
		"rolling: a step": {
			rolling, []*unstructured.Unstructured{v2, of(keep, v1, "a").Obj(), of(keep, v1, "b").Obj(), of(keep, v2, "c").Obj()},
			want{Writes: []string{"delete a", "hide b"}, State: "Progressing", Admit: "fresh"},
		},
		"restarted":     {restarted, append(ofAll(recreate, v2, 1), v2), want{Writes: []string{"delete m00"}, State: "Progressing"}},
		"template gone": {recreate, ofAll(recreate, v1, 2), want{}},
		"being deleted": {recreate, []*unstructured.Unstructured{v2, of(recreate, v1, "a").Set([]any{"x/y"}, "metadata", "finalizers").Deleting(now).Obj()}, want{State: "Progressing"}},
		"on a node that leaves": {
			keep, []*unstructured.Unstructured{v2, of(keep, v2, "a").Obj(), on(of(keep, v2, "a").Obj()), node(true)},
			want{Noted: []string{"a"}, State: "Progressing"},
		},
		"on a node that stays": {
			keep, []*unstructured.Unstructured{v2, of(keep, v2, "a").Obj(), on(of(keep, v2, "a").Obj()), node(false)}, want{State: "Progressing"},
		},
		"another pool's": {
			recreate, []*unstructured.Unstructured{v2, of(builders.MakePool("ns", "python").UID("another").Obj(), v1, "a").Obj()}, want{State: "Progressing"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, history{v1, v2}, append(tc.objs, tc.pool)...)
			writes, _ := r.step(tc.pool)
			got := want{writes, r.noted(), r.said(tc.pool, platform.RolloutStateKey), r.said(tc.pool, platform.AdmitKey)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if again, _ := r.step(tc.pool); len(again) > 0 {
				t.Errorf("written once more: %v", again)
			}
			if slices.Contains(r.writes, "publish "+tc.pool.GetName()) && len(tc.want.Writes) == 0 {
				t.Errorf("the outcome is written again although nothing changed")
			}
		})
	}
}

func TestNothingIsDoneForAPool(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Obj()
	stale := of(pool, v1, "a").Obj()
	t.Run("in mode audit", func(t *testing.T) {
		r := newRig(t, nil, pool, v2, stale)
		r.enforced = func(context.Context, string, string) (bool, error) { return false, nil }
		if _, _ = r.step(pool); len(r.writes) > 0 {
			t.Errorf("wrote %v", r.writes)
		}
	})
	t.Run("while the cache lacks a member", func(t *testing.T) {
		r := newRig(t, nil, pool, v2, stale)
		all := newRig(t, nil, pool, v2, stale, of(pool, v1, "b").Obj())
		r.view.lists = all.client
		_, again := r.step(pool)
		if diff := cmp.Diff(settling, again); diff != "" || len(r.writes) > 0 {
			t.Errorf("wrote %v, comes back after (-want,+got):\n%s", r.writes, diff)
		}
		r.view.lists = r.client
		if writes, _ := r.step(pool); len(writes) != 1 {
			t.Errorf("once it is proven: %v, want one delete", writes)
		}
	})
	t.Run("while the cache shows a member that is gone", func(t *testing.T) {
		r := newRig(t, nil, pool, v2, stale, of(pool, v1, "b").Obj())
		all := newRig(t, nil, pool, v2, stale)
		r.view.lists = later{all.client}
		if _, _ = r.step(pool); len(r.writes) > 0 {
			t.Errorf("wrote %v", r.writes)
		}
	})
	t.Run("whose template is not what the cache shows", func(t *testing.T) {
		r := newRig(t, nil, pool, v2, stale)
		stored := newRig(t, nil, pool, v1, stale)
		r.platform = stored.platform
		if writes, _ := r.step(pool); len(writes) > 0 {
			t.Errorf("wrote %v", writes)
		}
	})
}

// later is a list that is younger than everything in the cache.
type later struct{ client.Reader }

func (l later) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := l.Reader.List(ctx, list, opts...)
	list.SetResourceVersion("1000000")
	return err
}

func TestDeletesThatFailAreTriedAgain(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Obj()
	r := newRig(t, nil, pool, v2, of(pool, v1, "a").Obj())
	r.refuse["delete"] = apierrors.NewInternalError(fmt.Errorf("etcd is away"))
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err == nil {
		t.Error("no error although the delete failed")
	}
	delete(r.refuse, "delete")
	if writes, _ := r.step(pool); len(writes) != 1 {
		t.Errorf("writes %v, want the delete again", writes)
	}
}

// The lease is looked at before each request, not only when a plan begins.
func TestNothingIsStartedWithoutALease(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(9).Strategy("Recreate").Obj()
	r := newRig(t, nil, append(ofAll(pool, v1, 9), pool, v2)...)
	r.leads = func() bool { return len(r.writes) <= firstBatch }
	_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)})
	if !errors.Is(err, errNotLeading) {
		t.Errorf("error %v, want %v", err, errNotLeading)
	}
	deletes := 0
	for _, w := range r.writes {
		if strings.HasPrefix(w, "delete") {
			deletes++
		}
	}
	if deletes != firstBatch {
		t.Errorf("%d deletes were started, want the %d before the lease was over", deletes, firstBatch)
	}
}

// Members from before the webhook get their stamps, so many at a time.
func TestBackfillOfStamps(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(stampsAtOnce + 10).Strategy("OnReplenish").Obj()
	objs := []*unstructured.Unstructured{pool, v2}
	for i := range stampsAtOnce + 10 {
		m := of(pool, v2, fmt.Sprintf("m%02d", i)).NoLabel(platform.StampKey).Obj()
		objs = append(objs, m, builders.MakePod(m).NoLabel(platform.StampKey).Obj())
	}
	r := newRig(t, nil, objs...)
	writes, again := r.step(pool)
	if diff := cmp.Diff(nextStamps, again); diff != "" || len(writes) != 2*stampsAtOnce {
		t.Fatalf("%d stamps at first, want %d; comes back after (-want,+got):\n%s", len(writes), 2*stampsAtOnce, diff)
	}
	// Another leader goes on.
	r.memory = map[types.NamespacedName]*memory{}
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
		if diff := cmp.Diff(want.Hash(), u.GetLabels()[platform.StampKey]); diff != "" {
			t.Errorf("stamp of the %s (-want,+got):\n%s", kind.Kind, diff)
		}
	}
}

func TestOneBudgetForAllPools(t *testing.T) {
	small := func(name string) *unstructured.Unstructured {
		return builders.MakePool("ns", name).Template("python").Replicas(4).Strategy("OnReplenish").
			Annotation("freshbind.dev/rollout-strategy", "Recreate").Obj()
	}
	a, b := small("a"), small("b")
	objs := []*unstructured.Unstructured{a, b, v2}
	for i := range 4 {
		objs = append(objs, of(a, v1, fmt.Sprintf("a%d", i)).Obj(), of(b, v1, fmt.Sprintf("b%d", i)).Obj())
	}
	r := newRig(t, nil, objs...)
	r.budget = NewBudget(3, r.clock)
	first, again := r.step(a)
	if diff := cmp.Diff([]string{"delete a0", "delete a1", "delete a2", "hide a3"}, first); diff != "" {
		t.Errorf("the first pool (-want,+got):\n%s", diff)
	}
	if again != turn {
		t.Errorf("the first pool comes back after %s, want %s", again, turn)
	}
	second, _ := r.step(b)
	if diff := cmp.Diff([]string{"hide b0", "hide b1", "hide b2", "hide b3"}, second); diff != "" {
		t.Errorf("the second pool has to wait (-want,+got):\n%s", diff)
	}
	r.clock.SetTime(now.Add(slotFor))
	third, _ := r.step(b)
	if len(third) == 0 || !strings.HasPrefix(third[0], "delete b") {
		t.Errorf("a pool that never gets ready holds up the others: %v", third)
	}
}

func TestMembersAreOfferedWhenTheirTemplateReturns(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("OnReplenish").Obj()
	r := newRig(t, nil, append(ofAll(pool, v1, 2), pool, v1)...)
	r.step(pool)
	if noted := r.noted(); len(noted) > 0 {
		t.Fatalf("offered %v before anything changed", noted)
	}
	back := object(poolKinds.Templates)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(v1), back); err != nil {
		t.Fatal(err)
	}
	back.SetGeneration(3)
	if err := r.client.Update(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct {
		after time.Duration
		want  []string
	}{
		{0, nil}, {offers[0], []string{"m00", "m01"}}, {offers[0] + time.Second, nil}, {offers[1], []string{"m00", "m01"}}, {time.Hour, nil},
	} {
		r.clock.SetTime(now.Add(tc.after))
		r.step(pool)
		if diff := cmp.Diff(tc.want, r.noted()); diff != "" {
			t.Errorf("step %d, %s after the change (-want,+got):\n%s", i, tc.after, diff)
		}
	}
}

// A webhook that adds a field to every member makes all of them unknown; to
// replace them would only make more.
func TestTheValve(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Obj()
	foreign := func(name string, at time.Time) *unstructured.Unstructured {
		return of(pool, v2, name).PodSpec("kata", "runtimeClassName").Created(at).Obj()
	}
	r := newRig(t, history{v1, v2}, pool, v2, foreign("a", now.Add(-time.Hour)), foreign("b", now.Add(-time.Hour)))
	if writes, _ := r.step(pool); len(writes) != 2 {
		t.Fatalf("first %v, want two deletes", writes)
	}
	for _, name := range []string{"c", "d"} {
		if err := r.client.Create(t.Context(), foreign(name, now.Add(time.Minute))); err != nil {
			t.Fatal(err)
		}
	}
	r.clock.SetTime(now.Add(2 * time.Minute))
	if writes, _ := r.step(pool); len(writes) > 0 {
		t.Errorf("then %v, want the valve shut", writes)
	}
	if got, want := r.said(pool, platform.AttributionKey), r.said(pool, platform.RolloutRevisionKey); got != want || want == "" {
		t.Errorf("%s is %q, want the revision in force, %q", platform.AttributionKey, got, want)
	}
	status, err := platform.ParseRolloutStatus(r.said(pool, platform.RolloutStatusKey))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range status.Conditions {
		found = found || c.Type == platform.ConditionAttributionSuspended && c.Status == "True" &&
			strings.Contains(c.Message, "runtimeClassName")
	}
	if !found {
		t.Errorf("no condition names the path to copy: %+v", status.Conditions)
	}
}

func TestANewLeaderGoesOnWithARollout(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("OnReplenish").
		Annotation("freshbind.dev/rollout-strategy", "RollingUpdate").Annotation("freshbind.dev/progress-deadline", "1m").Obj()
	r := newRig(t, nil, pool, v2, of(pool, v1, "a").Obj(), builders.SandboxFrom(of(pool, v2, "b").Obj()).Ready(false).Obj())
	r.step(pool)
	if got := r.said(pool, platform.RolloutStateKey); got != "Progressing" {
		t.Fatalf("state %q, want Progressing", got)
	}
	r.memory = map[types.NamespacedName]*memory{}
	r.clock.SetTime(now.Add(2 * time.Minute))
	r.step(pool)
	if got := r.said(pool, platform.RolloutStateKey); got != "Failed" {
		t.Errorf("state %q, want Failed: the deadline does not begin anew", got)
	}
}

// Members that are bare Pods are judged when the pool or its template changes,
// not all the time.
func TestBarePodsAreSweptWhenSomethingChanged(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).APIVersion(builders.V1Alpha1).Obj()
	pod := func(owner *unstructured.Unstructured, name string) *unstructured.Unstructured {
		return builders.MakePod(of(pool, v1, name).Obj()).Owners(builders.ControllerRef(owner)).
			Label(agentsandbox.PodPoolLabel, agentsandbox.NameHash("python")).Obj()
	}
	r := newRig(t, nil, v1, pod(pool, "a"), pod(builders.MakePool("ns", "python").UID("another").Obj(), "b"))
	r.pods = &Pods{hints: make(chan Refusal, 10)}
	noted := func() []string {
		var out []string
		for len(r.pods.hints) > 0 {
			out = append(out, (<-r.pods.hints).Name)
		}
		return out
	}
	m := &memory{template: edition{generation: 1}}
	for i, tc := range []struct {
		generation int64
		want       []string
	}{{1, []string{"a"}}, {1, nil}, {2, []string{"a"}}} {
		m.template.generation = tc.generation
		if err := r.sweep(t.Context(), m, &situation{pool: pool}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, noted()); diff != "" {
			t.Errorf("sweep %d (-want,+got):\n%s", i, diff)
		}
	}
}
