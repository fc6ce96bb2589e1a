package pools

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/test/builders"
)

// What is seen between two plans is counted so that rather too much than too
// little is taken for being replaced.
func TestWhatIsObservedBetweenPlans(t *testing.T) {
	starting, ready, available := memberStatus{current: true}, memberStatus{ready: true, current: true}, memberStatus{ready: true, available: true, current: true}
	old := memberStatus{}
	oldAvailable := memberStatus{ready: true, available: true}
	type pool map[types.UID]memberStatus
	cases := map[string]struct {
		was, is           pool
		readied           sets.Set[types.UID]
		unseen            bool
		filled, overtaken int
	}{
		"a member gets available":             {was: pool{"a": starting}, is: pool{"a": available}, filled: 1},
		"an old one does":                     {was: pool{"a": old}, is: pool{"a": oldAvailable}},
		"a claim takes one":                   {was: pool{"a": available}, is: pool{}},
		"one that may have gone before":       {was: pool{"a": available}, is: pool{}, unseen: true, overtaken: 1},
		"a ready one is taken":                {was: pool{"a": ready}, is: pool{}, filled: 1},
		"an old one is taken":                 {was: pool{"a": old}, is: pool{}, readied: sets.New[types.UID]("a")},
		"an old one is taken, maybe before":   {was: pool{"a": old}, is: pool{}, readied: sets.New[types.UID]("a"), unseen: true, overtaken: 1},
		"an old ready one is, too":            {was: pool{"a": memberStatus{ready: true}}, is: pool{}, unseen: true, overtaken: 1},
		"an old one that never started goes":  {was: pool{"a": old}, is: pool{}, unseen: true},
		"one came and went":                   {was: pool{}, is: pool{}, readied: sets.New[types.UID]("a"), filled: 1},
		"one came and went, maybe before":     {was: pool{}, is: pool{}, readied: sets.New[types.UID]("a"), unseen: true, filled: 1, overtaken: 1},
		"one got ready and went maybe before": {was: pool{"a": starting}, is: pool{}, readied: sets.New[types.UID]("a"), unseen: true, filled: 1, overtaken: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Controller{ready: map[types.UID]sets.Set[types.UID]{}}
			m := &poolRecord{lastSeen: tc.was, readied: tc.readied, unseen: tc.unseen, gone: lru.New(goneKept)}
			s := &poolState{PoolState: freshness.PoolState{Replicas: 3, Now: now}}
			for uid, is := range tc.is {
				s.members = append(s.members, entry{WithPod: members.WithPod{Member: &members.Member{UID: uid}}})
				state := freshness.MemberState{Class: freshness.Stale}
				if is.current {
					state.Class = freshness.Current
				}
				if is.ready {
					state.ReadySince = now.Add(-time.Minute)
				}
				s.Members = append(s.Members, state)
			}
			p.observe(m, s)
			if s.Filled != tc.filled || s.Overtaken != tc.overtaken {
				t.Errorf("%d filled and %d overtaken, want %d and %d", s.Filled, s.Overtaken, tc.filled, tc.overtaken)
			}
		})
	}
}

// Claims that took members before the deletes may be seen together with those.
func TestDeletesAreUnseenUntilAPlanHasSeenThem(t *testing.T) {
	pool := rollingPool("python", 4, "max-unavailable", "2")
	r := replaced(t, 4, pool)
	r.step(pool)
	m := r.records[client.ObjectKeyFromObject(pool)]
	if !m.unseen {
		t.Error("deletes count as seen that were made a moment ago")
	}
	if r.step(pool); m.unseen {
		t.Error("deletes count as unseen that the cache shows")
	}
}

// A member that gets available takes one place, also when the cache shows an older
// pool than the last plan was made on, so that the stored one is read.
func TestAMemberFillsOnePlace(t *testing.T) {
	for name, version := range map[string]string{"the pool is current": "1", "the cached pool is older": "1000000"} {
		t.Run(name, func(t *testing.T) {
			pool := rollingPool("python", 4, "max-unavailable", "2")
			r := replaced(t, 4, pool)
			r.step(pool)
			r.step(pool)
			m := r.records[client.ObjectKeyFromObject(pool)]
			m.version = version
			if err := r.client.Create(t.Context(), of(pool, v2, "new").Obj()); err != nil {
				t.Fatal(err)
			}
			r.budget = NewBudget(0, Pace{}, r.notify)
			r.step(pool)
			if diff := cmp.Diff(freshness.Replacements{{Deleted: 1}}, m.rollout.Replacing); diff != "" {
				t.Errorf("in replacement (-want,+got):\n%s", diff)
			}
		})
	}
}

// A list from before a delete of which nobody knows whether it was made proves
// nothing.
func TestAnUnclearDeleteIsProvenByALaterList(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).Strategy("Recreate").Obj()
	r := newHarness(t, history{v1, v2}, pool, v2, of(pool, v1, "a").Obj())
	r.refuse["delete"] = apierrors.NewTimeoutError("no answer in time", 1)
	req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)}
	if _, err := r.Reconcile(t.Context(), req); err == nil {
		t.Fatal("no error although nobody knows what became of the delete")
	}
	lists := &counted{Reader: r.client}
	r.view.lists = lists
	if _, err := r.Reconcile(t.Context(), req); err == nil || lists.lists != 1 {
		t.Errorf("%d lists, error %v; want a new list and another try", lists.lists, err)
	}
	status := freshness.Replacements{{Deleted: 1}}
	if diff := cmp.Diff(status, r.records[req.NamespacedName].rollout.Replacing); diff != "" {
		t.Errorf("in replacement (-want,+got):\n%s", diff)
	}
}
