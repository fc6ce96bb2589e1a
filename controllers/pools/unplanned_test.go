package pools

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// unplannable has one pool's members compared with nothing any more.
type unplannable struct {
	Platform
	pool types.UID
}

func (u unplannable) Inspect(ctx context.Context, pool, template *unstructured.Unstructured) (*platform.Inspection, error) {
	if pool.GetUID() == u.pool {
		return nil, errors.New("a member cannot be read")
	}
	return u.Platform.Inspect(ctx, pool, template)
}

// budgetInUse has two pools of two members, of which the first has the whole budget.
func budgetInUse(t *testing.T) (r *harness, a, b *unstructured.Unstructured) {
	t.Helper()
	a = builders.MakePool("ns", "a").Template("python").Replicas(2).Strategy("Recreate").Obj()
	b = builders.MakePool("ns", "b").Template("python").Replicas(2).Strategy("Recreate").Obj()
	r = replaced(t, 2, a, b)
	r.budget = NewBudget(2, Pace{}, r.notify)
	if writes, _ := r.step(a); deletesIn(writes) != 2 {
		t.Fatalf("a deletes %v, want both members", writes)
	}
	return r, a, b
}

// leadsNext forgets what a leader knows.
func (r *harness) leadsNext(budget int) {
	r.records, r.ready = map[types.NamespacedName]*poolRecord{}, map[types.UID]sets.Set[types.UID]{}
	r.handover, r.budget = handover{}, NewBudget(budget, Pace{}, r.notify)
	r.view.listings.trim(r.clock.Now().Add(time.Hour))
}

// fails reconciles a pool, which cannot be planned.
func (r *harness) fails(pool *unstructured.Unstructured) {
	r.t.Helper()
	if _, err := r.Reconcile(r.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err == nil {
		r.t.Fatalf("pool %s is planned", pool.GetName())
	}
}

// What a pool replaces counts no longer when it cannot be planned than when it can, with
// the leader that began it and with the next one.
func TestAPoolThatCannotBePlannedHoldsUpOthersForItsDeadline(t *testing.T) {
	for name, nextLeader := range map[string]bool{"the same leader": false, "the next one": true} {
		t.Run(name, func(t *testing.T) {
			r, a, b := budgetInUse(t)
			r.platform = unplannable{r.platform, a.GetUID()}
			if nextLeader {
				r.leadsNext(2)
			}
			r.fails(a)
			if writes, _ := r.step(b); deletesIn(writes) != 0 {
				t.Fatalf("b deletes %v while a's members may still be replaced", writes)
			}
			r.clock.SetTime(now.Add(settings.DefaultDeadline))
			r.fails(a)
			if writes, _ := r.step(b); deletesIn(writes) != 2 {
				t.Errorf("b deletes %v, want both members", writes)
			}
		})
	}
}

// Before its members are proven to be seen, a pool has what the last leader stored.
func TestAPoolThatIsNotProvenHasWhatIsStored(t *testing.T) {
	r, a, _ := budgetInUse(t)
	stored := object(poolKinds.Pools)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(a), stored); err != nil {
		t.Fatal(err)
	}
	r.leadsNext(50)
	if err := r.takeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.unplanned(r.record(client.ObjectKeyFromObject(a), a.GetUID()), stored)
		if used := r.budget.used(""); used != 2 {
			t.Errorf("%d members are in replacement, want 2", used)
		}
	}
}

// Whoever may have written it, no rollout begins later than now: it would never stall.
func TestWhatIsStoredOfARolloutIsNotLaterThanNow(t *testing.T) {
	ahead := now.Add(time.Hour).UTC().Format(time.RFC3339)
	stored := map[string]string{settings.RolloutStatusKey: `{"updateRevision":"x","startTime":"` + ahead + `","progressTime":"` + ahead + `","replacing":[{"deleted":2}]}`}
	rollout, _ := recorded(stored, now)
	if !rollout.Stalled(time.Minute, now.Add(time.Minute)) {
		t.Errorf("begun at %s, with progress at %s, it has not stalled a minute after %s", rollout.Started, rollout.Progressed, now)
	}
}

// Nobody replaces what a pool deleted that was deleted itself, and created again before
// anybody looked.
func TestAPoolThatIsCreatedAgainOwesNothing(t *testing.T) {
	for name, nextLeader := range map[string]bool{"the same leader": false, "the next one": true} {
		t.Run(name, func(t *testing.T) {
			r, a, b := budgetInUse(t)
			if nextLeader {
				r.leadsNext(2)
				if err := r.takeOver(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			again := builders.MakePool("ns", "a").UID("again").Template("python").Replicas(0).Strategy("Recreate").Obj()
			if err := r.client.Delete(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if err := r.client.Create(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			r.step(again)
			if writes, _ := r.step(b); deletesIn(writes) != 2 {
				t.Errorf("b deletes %v, want both members", writes)
			}
			if followed := r.ready[a.GetUID()]; followed != nil {
				t.Errorf("members of the pool that is gone are followed: %v", followed)
			}
		})
	}
}

// A pool says what it replaces, and whoever may write to it may have it say anything.
func TestAPoolCannotHaveTheBudgetGrow(t *testing.T) {
	a := builders.MakePool("ns", "a").Template("python").Replicas(3).Strategy("Recreate").
		Annotation(settings.RolloutStatusKey, `{"updateRevision":"x","replacing":[{"deleted":-100}]}`).
		Annotation(settings.RolloutStateKey, string(freshness.Progressing)).Obj()
	b := builders.MakePool("ns", "b").Template("python").Replicas(3).Strategy("Recreate").Obj()
	r := replaced(t, 3, a, b)
	r.budget = NewBudget(2, Pace{}, r.notify)
	deleted := 0
	for range 3 {
		for _, pool := range []*unstructured.Unstructured{a, b} {
			writes, _ := r.step(pool)
			deleted += deletesIn(writes)
		}
	}
	if deleted != 2 {
		t.Errorf("%d members are in replacement at once, want the 2 of the budget", deleted)
	}
}

// A member that nobody may be given, and that is its pool's all the same, is listed, and
// shown.
func TestAMemberThatNobodyMayBeGivenLeavesNothingUnproven(t *testing.T) {
	pool := builders.MakePool("ns", "python").Obj()
	r := newHarness(t, nil)
	put, _ := storeOf(t, r)
	put(of(pool, v1, "idle").UID("idle").RV(5).Obj(), of(pool, v1, "locked").UID("locked").RV(6).Label(builders.LabelPool, "").Obj())
	for name, tc := range map[string]struct {
		listed map[types.UID]string
		want   bool
	}{
		"it is listed":                 {map[types.UID]string{"idle": "5", "locked": "6"}, true},
		"another list selects it not":  {map[types.UID]string{"idle": "5"}, true},
		"its version is not shown yet": {map[types.UID]string{"idle": "5", "locked": "7"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &listing{at: "10", members: map[types.UID]map[types.UID]string{pool.GetUID(): tc.listed}}
			if got := r.view.shows(pool, l); got != tc.want {
				t.Errorf("shows: %t, want %t", got, tc.want)
			}
		})
	}
}
