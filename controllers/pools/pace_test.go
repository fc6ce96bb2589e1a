package pools

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func TestPace(t *testing.T) {
	type step struct {
		after time.Duration
		take  int
	}
	type want struct {
		Free int
		Wait time.Duration
	}
	cases := map[string]struct {
		steps []step
		want  want
	}{
		"at first":                        {nil, want{3, 0}},
		"one went":                        {[]step{{0, 1}}, want{2, time.Second}},
		"all went":                        {[]step{{0, 3}}, want{0, time.Second}},
		"all went, one after the other":   {[]step{{0, 1}, {0, 1}, {0, 1}}, want{0, time.Second}},
		"not yet":                         {[]step{{0, 3}, {999 * time.Millisecond, 0}}, want{0, time.Millisecond}},
		"one more":                        {[]step{{0, 3}, {time.Second, 0}}, want{1, time.Second}},
		"one more, and it went":           {[]step{{0, 3}, {time.Second, 1}}, want{0, time.Second}},
		"time is not lost":                {[]step{{0, 3}, {1600 * time.Millisecond, 1}}, want{0, 400 * time.Millisecond}},
		"all again":                       {[]step{{0, 3}, {3 * time.Second, 0}}, want{3, 0}},
		"never more":                      {[]step{{0, 3}, {time.Hour, 0}}, want{3, 0}},
		"not carried out":                 {[]step{{0, 3}, {0, -2}}, want{2, time.Second}},
		"not carried out, later":          {[]step{{0, 3}, {time.Hour, -2}}, want{3, 0}},
		"more than was owed came back":    {[]step{{0, 3}, {time.Hour, -2}, {0, 3}}, want{0, time.Second}},
		"the clock is set back":           {[]step{{0, 3}, {-time.Hour, 0}}, want{0, time.Second}},
		"the clock was set back for long": {[]step{{0, 3}, {-time.Hour, 0}, {time.Second, 0}}, want{1, time.Second}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(now)
			p := pace{Pace: Pace{Every: time.Second, Burst: 3, Clock: clock}}
			for _, s := range tc.steps {
				clock.SetTime(clock.Now().Add(s.after))
				p.free()
				p.take(s.take)
			}
			got := want{}
			got.Free, got.Wait = p.free()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("free() (-want,+got):\n%s", diff)
			}
		})
	}
}

// Where many may go at once, they go some at a time.
func TestPaceInSteps(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(now)
	p := pace{Pace: Pace{Every: time.Second, Burst: 30, Clock: clock}}
	type free struct {
		N    int
		Wait time.Duration
	}
	got := map[string]free{}
	note := func(when string) {
		n, wait := p.free()
		got[when] = free{n, wait}
	}
	p.take(27)
	note("a step is left")
	p.take(1)
	note("less is left")
	p.exhaust()
	note("exhausted")
	clock.SetTime(now.Add(2999 * time.Millisecond))
	note("not yet")
	clock.SetTime(now.Add(3 * time.Second))
	note("a step later")
	want := map[string]free{
		"a step is left": {3, time.Second}, "less is left": {0, time.Second}, "exhausted": {0, 3 * time.Second},
		"not yet": {0, time.Millisecond}, "a step later": {3, time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("free() (-want,+got):\n%s", diff)
	}
}

func TestPaceOfABudget(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(now)
	for budget, want := range map[int]Pace{
		1:  {Every: 5 * time.Second, Burst: 1},
		50: {Every: 100 * time.Millisecond, Burst: 50},
	} {
		if want.Clock = clock; PaceOf(budget, clock) != want {
			t.Errorf("PaceOf(%d) = %+v, want %+v", budget, PaceOf(budget, clock), want)
		}
	}
}

// What is over soon makes room in the budget, and lets nothing go sooner.
func TestTheBudgetOfAControllerHasItsPace(t *testing.T) {
	clock, turns := clocktesting.NewFakePassiveClock(now), hints.New[reconcile.Request]()
	b := budgetOf(2, clock, turns)
	a, other := client.ObjectKey{Name: "a"}, client.ObjectKey{Name: "b"}
	got := []Grant{b.Take(a, "a", Account{}, Grant{2, 2})}
	b.Settle("a", Account{}, true)
	got = append(got, b.Take(other, "b", Account{}, Grant{2, 2}))
	b.Settle("b", Account{}, true)
	next := <-turns
	clock.SetTime(now.Add(next.After))
	got = append(got, b.Take(other, "b", Account{}, Grant{2, 2}))
	if diff := cmp.Diff([]Grant{{2, 2}, {}, {1, 1}}, got); diff != "" {
		t.Errorf("grants (-want,+got):\n%s", diff)
	}
	want := hints.Hint[reconcile.Request]{Key: reconcile.Request{NamespacedName: other}, After: replacementTime / 2}
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("woken (-want,+got):\n%s", diff)
	}
}

// paced has a budget for so many at a pace of a few at once, and then one each second.
func (r *harness) paced(budget, burst int) {
	r.budget = NewBudget(budget, Pace{Every: time.Second, Burst: burst, Clock: r.clock}, r.notify)
}

// replaceAll has new members, ready at once, take the places of those that were deleted.
func (r *harness) replaceAll(pool, template *unstructured.Unstructured, writes []string, ready bool) {
	r.t.Helper()
	for range deletesIn(writes) {
		r.born++
		m := of(pool, template, fmt.Sprintf("%s-new-%02d", pool.GetName(), r.born)).Created(r.clock.Now()).Ready(ready).Obj()
		if err := r.client.Create(r.t.Context(), m); err != nil {
			r.t.Fatal(err)
		}
	}
}

// However soon the new members are ready, no more is deleted than the pace allows, and
// that is no rollout without progress.
func TestDeletesGoAtAPace(t *testing.T) {
	pool := builders.MakePool("ns", "python").Template("python").Replicas(10).Strategy("Recreate").
		Annotation("freshbind.dev/progress-deadline", "3s").Obj()
	r := replaced(t, 10, pool)
	r.paced(50, 4)
	var got []int
	for range 8 {
		writes, _ := r.step(pool)
		r.replaceAll(pool, v2, writes, true)
		got = append(got, deletesIn(writes))
		if state := r.annotation(pool, settings.RolloutStateKey); state == string(freshness.Failed) {
			t.Errorf("the rollout is %s, though every member got ready at once", state)
		}
		r.clock.SetTime(r.clock.Now().Add(time.Second))
	}
	if diff := cmp.Diff([]int{4, 1, 1, 1, 1, 1, 1, 0}, got); diff != "" {
		t.Errorf("deletes in each second (-want,+got):\n%s", diff)
	}
}

// Only the pool that is next looks at the clock. Each delete calls the next one.
func TestThePaceWakesOnePoolAfterTheOther(t *testing.T) {
	pools := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"a", "b", "c"} {
		pools[name] = builders.MakePool("ns", name).Template("python").Replicas(2).Strategy("Recreate").Obj()
	}
	r := replaced(t, 2, pools["a"], pools["b"], pools["c"])
	r.paced(50, 1)
	for _, name := range []string{"a", "b", "c"} {
		r.step(pools[name])
	}
	var got []string
	for range 5 {
		if len(r.later) != 1 || len(r.notified) > 0 {
			t.Fatalf("after %v: %v are woken later, and %v now, want one later", got, r.later, r.notified)
		}
		for name, after := range r.later {
			clear(r.later)
			r.clock.SetTime(r.clock.Now().Add(after))
			writes, _ := r.step(pools[name])
			got = append(got, fmt.Sprintf("%s %d %s", name, deletesIn(writes), after))
		}
	}
	if diff := cmp.Diff([]string{"a 1 1s", "b 1 1s", "c 1 1s", "b 1 1s", "c 1 1s"}, got); diff != "" {
		t.Errorf("woken, deletes, after (-want,+got):\n%s", diff)
	}
	if len(r.later)+len(r.notified) > 0 {
		t.Errorf("%v and %v are woken though none waits", r.later, r.notified)
	}
}

// A foreign webhook that refuses one pool's deletes costs the others nothing.
func TestADeleteThatIsRefusedCostsNoOtherPoolOne(t *testing.T) {
	a := builders.MakePool("ns", "a").Template("python").Replicas(3).Strategy("Recreate").Obj()
	b := builders.MakePool("ns", "b").Template("python").Replicas(3).Strategy("Recreate").Obj()
	r := replaced(t, 3, a, b)
	r.paced(50, 3)
	r.refuse["delete a-00"] = apierrors.NewForbidden(schema.GroupResource{}, "a-00", errors.New("denied by a webhook"))
	r.refuse["delete a-01"] = r.refuse["delete a-00"]
	r.step(a)
	if writes, _ := r.step(b); deletesIn(writes) != 2 {
		t.Errorf("%v, want two deletes: of three that may go one went", writes)
	}
}

// When the leader before deleted its last member nobody knows.
func TestANewLeaderBeginsSlowly(t *testing.T) {
	pool := builders.MakePool("ns", "python").Template("python").Replicas(6).Strategy("Recreate").Obj()
	r := replaced(t, 6, pool)
	r.paced(50, 3)
	writes, _ := r.step(pool)
	next := newHarness(t, history{v1, v2})
	next.client, next.Controller.client = r.client, r.client
	next.view.cache, next.view.lists = r.client, r.client
	next.platform.(*inForce).stored = r.client
	next.paced(50, 3)
	got := []int{deletesIn(writes)}
	for range 2 {
		r.writes = nil
		next.step(pool)
		got = append(got, deletesIn(r.writes))
		next.clock.SetTime(now.Add(time.Second))
	}
	if diff := cmp.Diff([]int{3, 0, 1}, got); diff != "" {
		t.Errorf("deletes of one leader, of the next one, and a second later (-want,+got):\n%s", diff)
	}
}

// A member that never was ready, in the place of one that was deleted, needs no part of
// the budget. Nor does it go faster than others.
func TestWhatIsReplacedAgainKeepsToThePace(t *testing.T) {
	pool := builders.MakePool("ns", "python").Template("python").Replicas(4).Strategy("Recreate").Obj()
	r := replaced(t, 4, pool)
	r.paced(2, 2)
	writes, _ := r.step(pool)
	r.replaceAll(pool, v2, writes, false)
	v3 := builders.TemplateFrom(v2).Image("sandbox:v3").Generation(3).Obj()
	stored := object(poolKinds.Templates)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(v2), stored); err != nil {
		t.Fatal(err)
	}
	v3.SetResourceVersion(stored.GetResourceVersion())
	if err := r.client.Update(t.Context(), v3); err != nil {
		t.Fatal(err)
	}
	got := []int{deletesIn(writes)}
	for range 3 {
		clear(r.later)
		writes, _ = r.step(pool)
		got = append(got, deletesIn(writes))
		if after := r.later["python"]; len(got) < 4 && after != time.Second {
			t.Errorf("woken after %s, want 1s", after)
		}
		r.clock.SetTime(r.clock.Now().Add(time.Second))
	}
	if diff := cmp.Diff([]int{2, 0, 1, 1}, got); diff != "" {
		t.Errorf("deletes (-want,+got):\n%s", diff)
	}
}

// unlistable cannot be listed.
type unlistable struct{ client.Reader }

func (unlistable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no answer")
}

// A pool that cannot use its turn holds up no other.
func TestAPoolThatCannotBePlannedPassesItsTurn(t *testing.T) {
	cases := map[string]func(*harness, *poolRecord){
		"its members cannot be listed": func(r *harness, m *poolRecord) {
			m.proven, m.unclear = false, true
			r.view.lists = unlistable{r.client}
		},
		"its template cannot be read": func(r *harness, m *poolRecord) {
			m.roster, m.inspection = nil, nil
			r.platform = unreadable{r.platform}
		},
	}
	for name, breaks := range cases {
		t.Run(name, func(t *testing.T) {
			a := builders.MakePool("ns", "a").Template("python").Replicas(2).Strategy("Recreate").Obj()
			b := builders.MakePool("ns", "b").Template("python").Replicas(2).Strategy("Recreate").Obj()
			c := builders.MakePool("ns", "c").Template("python").Replicas(2).Strategy("Recreate").Obj()
			r := replaced(t, 2, a, b, c)
			r.paced(50, 2)
			for _, pool := range []*unstructured.Unstructured{a, b, c} {
				r.step(pool)
			}
			clear(r.later)
			breaks(r, r.records[client.ObjectKeyFromObject(b)])
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(map[string]time.Duration{"c": time.Second}, r.later); diff != "" {
				t.Errorf("woken later (-want,+got):\n%s", diff)
			}
		})
	}
}

// unreadable cannot inspect members.
type unreadable struct{ Platform }

func (unreadable) Inspect(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) (*platform.Inspection, error) {
	return nil, errors.New("no answer")
}
