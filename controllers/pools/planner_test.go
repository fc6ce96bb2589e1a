package pools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func rollingPool(name string, replicas int64, annotations ...string) *unstructured.Unstructured {
	b := builders.MakePool("ns", name).Template("python").Replicas(replicas).Strategy("OnReplenish").
		Annotation("freshbind.dev/rollout-strategy", "RollingUpdate")
	for i := 0; i < len(annotations); i += 2 {
		b = b.Annotation("freshbind.dev/"+annotations[i], annotations[i+1])
	}
	return b.Obj()
}

// replaced is a harness of pools whose members are all stale.
func replaced(t *testing.T, each int, pools ...*unstructured.Unstructured) *harness {
	t.Helper()
	objs := append([]*unstructured.Unstructured{v2}, pools...)
	for _, pool := range pools {
		for i := range each {
			objs = append(objs, of(pool, v1, fmt.Sprintf("%s-%02d", pool.GetName(), i)).Obj())
		}
	}
	return newHarness(t, history{v1, v2}, objs...)
}

func deletesIn(writes []string) int {
	return len(slices.DeleteFunc(slices.Clone(writes), func(w string) bool { return !strings.HasPrefix(w, "delete") }))
}

// What waits for other pools is given to claims as if it waited for nothing, so
// that it is not hidden by one plan and shown by the next.
func TestWhatWaitsIsNotHiddenAndShownInTurns(t *testing.T) {
	pools := []*unstructured.Unstructured{
		rollingPool("a", 4, "max-unavailable", "2"), rollingPool("b", 4, "max-unavailable", "2"), rollingPool("c", 4, "max-unavailable", "2"),
	}
	r := replaced(t, 4, pools...)
	r.budget = NewBudget(1, Pace{}, r.notify)
	patches, deletes := map[string]int{}, 0
	for i := range 20 {
		r.clock.SetTime(now.Add(time.Duration(i) * time.Second))
		for _, pool := range pools {
			writes, _ := r.step(pool)
			deletes += deletesIn(writes)
			for _, w := range writes {
				if verb, member, _ := strings.Cut(w, " "); verb == "hide" || verb == "show" {
					patches[member]++
				}
			}
		}
	}
	for member, n := range patches {
		if n > 2 {
			t.Errorf("member %s was patched %d times while `admit` changed once", member, n)
		}
	}
	if deletes != 1 {
		t.Errorf("%d members deleted, want 1: none became ready in its place", deletes)
	}
}

func TestANewLeaderKnowsWhatIsBeingReplaced(t *testing.T) {
	pool := func(name string) *unstructured.Unstructured {
		return builders.MakePool("ns", name).Template("python").Replicas(4).Strategy("Recreate").Obj()
	}
	a, b := pool("a"), pool("b")
	r := replaced(t, 4, a, b)
	r.budget = NewBudget(3, Pace{}, r.notify)
	writes, _ := r.step(a)
	r.writes = nil
	for range 4 {
		next := newHarness(t, history{v1, v2})
		next.client, next.Controller.client = r.client, r.client
		next.view.cache, next.view.lists = r.client, r.client
		next.platform.(*inForce).stored = r.client
		next.budget = NewBudget(3, Pace{}, next.notify)
		for _, pool := range []*unstructured.Unstructured{b, a} {
			next.step(pool)
			writes = append(writes, r.writes...)
			r.writes = nil
		}
	}
	if n := deletesIn(writes); n != 3 {
		t.Errorf("%d members deleted by five leaders, none replaced: the budget is 3", n)
	}
}

func TestAPoolLargerThanTheBudgetFailsByItself(t *testing.T) {
	pool := builders.MakePool("ns", "big").Template("python").Replicas(20).Strategy("Recreate").
		Annotation("freshbind.dev/progress-deadline", "2m").Obj()
	r := replaced(t, 20, pool)
	r.budget = NewBudget(5, Pace{}, r.notify)
	deletes := 0
	var failedAfter time.Duration
	for i := range 40 {
		r.clock.SetTime(now.Add(time.Duration(i) * 30 * time.Second))
		writes, _ := r.step(pool)
		deletes += deletesIn(writes)
		if failedAfter == 0 && r.annotation(pool, settings.RolloutStateKey) == string(freshness.Failed) {
			failedAfter = r.clock.Now().Sub(now)
		}
		if why := r.annotation(pool, settings.RolloutReasonKey); why == string(freshness.Queued) {
			t.Fatalf("after %s: %q, though there is no other pool", time.Duration(i)*30*time.Second, why)
		}
	}
	if got := r.annotation(pool, settings.RolloutStateKey); got != string(freshness.Failed) || deletes != 5 {
		t.Errorf("%q after 20 minutes with %d deletes, want Failed after 5", got, deletes)
	}
	if most := 150 * time.Second; failedAfter < 2*time.Minute || failedAfter > most {
		t.Errorf("Failed after %s, want it after the deadline of 2 minutes, and within %s", failedAfter, most)
	}
}

func TestAPoolWithoutATemplateWaitsForNothing(t *testing.T) {
	a, b, c := rollingPool("a", 4, "max-unavailable", "4"), rollingPool("b", 4, "max-unavailable", "4"), rollingPool("c", 4, "max-unavailable", "4")
	r := replaced(t, 4, a, b, c)
	r.budget = NewBudget(4, Pace{}, r.notify)
	r.step(a)
	r.step(b)
	orphan := object(poolKinds.Pools)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(b), orphan); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(orphan.Object, "gone", "spec", "sandboxTemplateRef", "name"); err != nil {
		t.Fatal(err)
	}
	if err := r.client.Update(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	r.step(b)
	// Whatever a had is replaced.
	r.budget.Forget(a.GetUID())
	if writes, _ := r.step(c); deletesIn(writes) != 4 {
		t.Errorf("%v, want all of the budget: the pool that waits has no template", writes)
	}
}

// Pools are looked at with every event of theirs.
func TestWhatWritesNothingReadsNoMode(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).Strategy("Recreate").Obj()
	r := newHarness(t, history{v2}, pool, v2, of(pool, v2, "a").Obj())
	r.step(pool)
	read := 0
	r.enforcedNow = func(context.Context, string, string) (bool, error) { read++; return true, nil }
	if r.step(pool); read > 0 || len(r.writes) > 0 {
		t.Errorf("read the mode %d times, wrote %v", read, r.writes)
	}
}

// The emergency brake works however late the caches are.
func TestAuditIsObeyedBeforeTheCacheShowsIt(t *testing.T) {
	cases := map[string]struct {
		pool *unstructured.Unstructured
		obj  *unstructured.Unstructured
	}{
		"deletes": {builders.MakePool("ns", "python").Replicas(1).Strategy("Recreate").Obj(), v1},
		"words":   {builders.MakePool("ns", "python").Replicas(1).Strategy("Recreate").Obj(), v2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, history{v1, v2}, tc.pool, v2, of(tc.pool, tc.obj, "a").NoLabel(settings.StampKey).Obj())
			r.enforcedNow = func(context.Context, string, string) (bool, error) { return false, nil }
			if r.step(tc.pool); len(r.writes) > 0 {
				t.Errorf("wrote %v in mode audit", r.writes)
			}
			r.enforcedNow = func(context.Context, string, string) (bool, error) { return false, errors.New("no answer") }
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(tc.pool)}); err == nil || len(r.writes) > 0 {
				t.Errorf("wrote %v, error %v, while the mode cannot be read", r.writes, err)
			}
		})
	}
}

func TestTheOutcomeIsNotWrittenWithoutALease(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).Strategy("Recreate").Obj()
	r := newHarness(t, nil, pool, v2, of(pool, v2, "a").Obj())
	r.leads = func() bool { return false }
	_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)})
	if !errors.Is(err, errNotLeading) || len(r.writes) > 0 {
		t.Errorf("wrote %v, error %v", r.writes, err)
	}
}

// Four members that a webhook of somebody else's keeps hold up none of the others.
func TestMembersThatCannotBeDeletedHoldUpNoOther(t *testing.T) {
	pool := builders.MakePool("ns", "python").Template("python").Replicas(40).Strategy("Recreate").Obj()
	r := replaced(t, 40, pool)
	recorder := events.NewFakeRecorder(100)
	r.events = recorder
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "sandboxes"}, "kept", errors.New("denied by a webhook"))
	for i := range 4 {
		r.refuse[fmt.Sprintf("delete python-%02d", i)] = denied
	}
	left := func() int {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(listOf(poolKinds.Sandboxes))
		if err := r.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	reconciles := 0
	for ; reconciles < 30 && left() > 4; reconciles++ {
		_, _ = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)})
	}
	if n := left(); n != 4 || reconciles > 3 {
		t.Errorf("%d members left after %d reconciles, want the 4 that cannot be deleted", n, reconciles)
	}
	event := ""
	for len(recorder.Events) > 0 {
		if e := <-recorder.Events; strings.HasPrefix(e, corev1.EventTypeWarning+" "+eventFailedDelete) {
			event = e
		}
	}
	if !strings.Contains(event, "python-00 and 3 more") || !strings.Contains(event, "denied by a webhook") {
		t.Errorf("events tell %q", event)
	}
	if n := len(r.writes); n > 60 {
		t.Errorf("%d writes", n)
	}
	r.writes = nil
	if writes, again := r.step(pool); len(writes) > 0 || again > firstBackoff || again == 0 {
		t.Errorf("writes %v, comes back after %s, want it to wait", writes, again)
	}
	r.refuse = map[string]error{}
	r.clock.SetTime(now.Add(firstBackoff))
	if writes, _ := r.step(pool); deletesIn(writes) != 4 {
		t.Errorf("then %v, want the four deletes", writes)
	}
}

func TestBackoffGrows(t *testing.T) {
	m := &poolRecord{failures: backoffs{}}
	var waits []time.Duration
	for range 9 {
		m.failures.note("a", now)
		waits = append(waits, m.failures.next(now))
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 64, 120, 120}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

// A pool that is switched to another template rolls as after an edit.
func TestASwitchOfTemplatesRolls(t *testing.T) {
	other := builders.MakeTemplate("ns", "other").Image("sandbox:v3").Obj()
	cases := map[string]struct {
		pool          *unstructured.Unstructured
		deletes, hide int
		state         string
	}{
		"step by step":             {rollingPool("python", 20, "max-unavailable", "25%"), 5, 15, "Progressing"},
		"paused":                   {rollingPool("python", 20, "paused", "true"), 0, 20, "Paused"},
		"recreate":                 {builders.MakePool("ns", "python").Replicas(20).Strategy("Recreate").Obj(), 20, 0, "Progressing"},
		"on replenish":             {builders.MakePool("ns", "python").Replicas(20).Strategy("OnReplenish").Obj(), 20, 0, "Progressing"},
		"on replenish, and paused": {builders.MakePool("ns", "python").Replicas(20).Strategy("OnReplenish").Annotation("freshbind.dev/paused", "true").Obj(), 0, 20, "Paused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			switched := builders.PoolFrom(tc.pool).Template("other").Obj()
			objs := []*unstructured.Unstructured{switched, v2, other}
			r := newHarness(t, history{v1, v2}, append(objs, ofAll(tc.pool, v2, 20)...)...)
			var writes []string
			for i := range 5 {
				r.clock.SetTime(now.Add(time.Duration(i) * time.Second))
				more, _ := r.step(switched)
				writes = append(writes, more...)
			}
			if n := deletesIn(writes); n != tc.deletes || len(writes)-n != tc.hide {
				t.Errorf("%d deletes and %d others, want %d and %d: %v", n, len(writes)-n, tc.deletes, tc.hide, writes)
			}
			if got := r.annotation(switched, settings.RolloutStateKey); got != tc.state {
				t.Errorf("state %q, want %s", got, tc.state)
			}
			if got := r.annotation(switched, settings.AdmitKey); got == string(freshness.AdmitAny) {
				t.Errorf("admit %q: nobody can be given what is of another template", got)
			}
		})
	}
}

// A cache that still shows fewer replicas does not take back what was planned on
// the pool as it is.
func TestACacheOfPoolsThatIsBehindAPlan(t *testing.T) {
	const ahead = 2
	pool := rollingPool("python", 5+ahead, "max-unavailable", "1")
	pool.SetResourceVersion("7")
	before := pool.DeepCopy()
	before.SetResourceVersion("5")
	if err := unstructured.SetNestedField(before.Object, int64(5), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	r := replaced(t, 5, pool)
	r.view.cache = behind{r.client, before}
	for i, what := range []string{"planned on the stored pool", "and once more"} {
		r.step(pool)
		replacing := r.records[client.ObjectKeyFromObject(pool)].rollout.Replacing
		if replacing.Awaited() != ahead+1 || replacing.Deleted() != 1 {
			t.Errorf("%d, %s: %d are awaited, %d of them deleted; want %d and 1", i, what, replacing.Awaited(), replacing.Deleted(), ahead+1)
		}
	}
}

// behind shows an older version of one pool.
type behind struct {
	client.Reader
	pool *unstructured.Unstructured
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u.GetKind() != b.pool.GetKind() || key != client.ObjectKeyFromObject(b.pool) {
		return b.Reader.Get(ctx, key, obj, opts...)
	}
	b.pool.DeepCopyInto(u)
	return nil
}
