package pools

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func TestDeletesThatFailAreTriedAgain(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Obj()
	r := newHarness(t, nil, pool, v2, of(pool, v1, "a").Obj())
	r.refuse["delete"] = apierrors.NewInternalError(fmt.Errorf("etcd is away"))
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err == nil {
		t.Error("no error although the delete failed")
	}
	delete(r.refuse, "delete")
	r.clock.SetTime(now.Add(firstBackoff))
	if writes, _ := r.step(pool); len(writes) != 1 {
		t.Errorf("writes %v, want the delete again", writes)
	}
}

// Where only the pool says enforce, claims wait for the label.
func TestAMemberThatCannotBeDeletedHoldsUpNoStamp(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Annotation(settings.EnforcementKey, "enforce").Obj()
	r := newHarness(t, nil, pool, v2, of(pool, v1, "a").Label(settings.EnforcementKey, "enforce").Obj(), of(pool, v2, "b").Obj())
	r.refuse["delete"] = apierrors.NewInternalError(errors.New("etcd is away"))
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err == nil {
		t.Error("no error although the delete failed")
	}
	if !slices.Contains(r.writes, "stamp Sandbox b") {
		t.Errorf("writes %v, want a stamp of b", r.writes)
	}
}

// The lease is looked at before each request, not only when a plan begins.
func TestNothingIsStartedWithoutALease(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(9).Strategy("Recreate").Obj()
	r := newHarness(t, nil, append(ofAll(pool, v1, 9), pool, v2)...)
	r.leads = func() bool { return r.count() <= firstBatch }
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

func TestMetricsOfAPool(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(3).Strategy("OnReplenish").Obj()
	r := newHarness(t, history{v1}, pool, v2, of(pool, v1, "a").Obj(), of(pool, v2, "b").Obj(), of(pool, v2, "c").Ready(false).Obj())
	r.step(pool)
	got := map[string]float64{}
	for _, state := range []string{"ready", "updated", "claimable", "stale", "unknown"} {
		got[state] = testutil.ToFloat64(r.metrics.members.WithLabelValues("ns", "python", state))
	}
	want := map[string]float64{"ready": 2, "updated": 2, "claimable": 2, "stale": 1, "unknown": 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("freshbind_pool_members (-want,+got):\n%s", diff)
	}
	if v := testutil.ToFloat64(r.metrics.state.WithLabelValues("ns", "python", "Progressing")); v != 1 {
		t.Errorf("freshbind_rollout_state of Progressing is %v, want 1", v)
	}
	if err := r.client.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r.step(pool)
	if n := testutil.CollectAndCount(r.metrics.members) + testutil.CollectAndCount(r.metrics.state); n != 0 {
		t.Errorf("%d series are left of a pool that is gone", n)
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
	r := newHarness(t, nil, objs...)
	r.budget = NewBudget(3, Pace{}, r.notify)
	first, again := r.step(a)
	if diff := cmp.Diff([]string{"delete a0", "delete a1", "delete a2", "hide a3"}, first); diff != "" {
		t.Errorf("the first pool (-want,+got):\n%s", diff)
	}
	if again > budgetRecheck || again == 0 {
		t.Errorf("the first pool comes back after %s, want at most %s", again, budgetRecheck)
	}
	second, _ := r.step(b)
	if diff := cmp.Diff([]string{"hide b0", "hide b1", "hide b2", "hide b3"}, second); diff != "" {
		t.Errorf("the second pool has to wait (-want,+got):\n%s", diff)
	}
	if got := r.annotation(b, settings.RolloutReasonKey); got != string(freshness.MembersUpdating) {
		t.Errorf("the second pool says %q at first", got)
	}
	// What waits costs no read and no write.
	r.clock.SetTime(now.Add(countsEvery))
	r.step(b)
	if got := r.annotation(b, settings.RolloutReasonKey); got != string(freshness.Queued) {
		t.Errorf("the second pool says %q, want %s", got, freshness.Queued)
	}
	gets := r.platform.(*inForce).gets.Load()
	for i := range 3 {
		r.clock.SetTime(now.Add(time.Duration(i+2) * countsEvery))
		if r.step(b); len(r.writes) > 0 {
			t.Errorf("wrote %v while it waits", r.writes)
		}
	}
	if n := r.platform.(*inForce).gets.Load() - gets; n > 0 {
		t.Errorf("%d live reads while it waits", n)
	}
	r.clock.SetTime(now.Add(settings.DefaultDeadline))
	r.step(a)
	if got := r.annotation(a, settings.RolloutStateKey); got != string(freshness.Failed) {
		t.Errorf("a pool that never gets ready is %q, want %s", got, freshness.Failed)
	}
	if diff := cmp.Diff([]string{"b"}, r.notified); diff != "" {
		t.Errorf("woken (-want,+got):\n%s", diff)
	}
	third, _ := r.step(b)
	if diff := cmp.Diff([]string{"delete b0", "delete b1", "delete b2"}, third); diff != "" {
		t.Errorf("a pool that never gets ready holds up the others (-want,+got):\n%s", diff)
	}
	if more, _ := r.step(a); len(more) > 0 {
		t.Errorf("a pool that failed goes on with %v beyond the budget", more)
	}
}
