package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/controllers/pools"
)

// shipped is what the budget grants.
func shipped(size int, pool, another Charge, want int) int {
	b := pools.NewBudget(size, pools.Pace{}, func(types.NamespacedName, time.Duration) {})
	b.Settle("another", pools.Account{Replacing: another.Replacing, Stalled: another.Stalled}, true)
	return b.Take(types.NamespacedName{Name: "pool"}, "pool", pools.Account{Replacing: pool.Replacing, Stalled: pool.Stalled},
		pools.Grant{Replacements: want, Deletes: want}).Replacements
}

// Each safeguard is needed: without it there is a history that breaks a promise.
func TestEachSafeguardIsNeeded(t *testing.T) {
	for _, v := range Variants() {
		t.Run(v.Name, func(t *testing.T) {
			r := v.Explore(v.In, shipped, 0)
			if r.Broken != v.Want {
				t.Errorf("breaks %q, want %q", r.Broken, v.Want)
			}
			t.Logf("%s: %s\n%s", v.In.Name, r, r.Story)
		})
	}
}

// With all safeguards no history breaks a promise. All scenes take a minute: make model.
func TestNoRolloutBreaksAPromise(t *testing.T) {
	for _, b := range Quick() {
		t.Run(b.Name, func(t *testing.T) {
			r := new(Variant).Explore(b, shipped, 0)
			if r.Broken != Kept || !r.Whole {
				t.Errorf("broken:\n%s", r.Story)
			}
			t.Log(r)
		})
	}
}

// What two runs go through is the same.
func TestARunIsLikeTheOther(t *testing.T) {
	b := Quick()[0]
	one, other := new(Variant).Explore(b, shipped, 0), new(Variant).Explore(b, shipped, 0)
	one.Elapsed, other.Elapsed = 0, 0
	if diff := cmp.Diff(one, other); diff != "" {
		t.Errorf("(-one,+other):\n%s", diff)
	}
}

// Whatever can happen does so in some scene.
func TestEverythingHappens(t *testing.T) {
	seen := map[act]bool{}
	for _, b := range Scenes() {
		all, e := newSpace(), newExplorer(&Variant{}, &b, shipped)
		for from := 0; from < len(all.nodes) && len(all.nodes) < 2000; {
			to := len(all.nodes)
			all.expand([]*explorer{e}, from, to)
			for _, n := range all.nodes[from:to] {
				s := n.key.unpack()
				e.successors(&s, func(of step, _ *state, _ Promise, _ bool) { seen[of.act] = true })
			}
			all.merge([]*explorer{e})
			from = to
		}
	}
	for of := edits; of <= plansAndEnds; of++ {
		if !seen[of] {
			t.Errorf("never: %q", actWords[of])
		}
	}
}

func TestAStateIsWhatItWasPackedFrom(t *testing.T) {
	for _, b := range Quick() {
		e := newExplorer(&Variant{}, &b, shipped)
		queue, seen := []state{initial()}, map[key]bool{}
		for len(queue) > 0 && len(seen) < 5000 {
			s := queue[0]
			queue = queue[1:]
			e.successors(&s, func(_ step, next *state, _ Promise, _ bool) {
				next.tidy(e.bounds)
				k := next.pack()
				if got := k.unpack(); got != *next {
					t.Fatalf("state %+v: unpacked %+v", *next, got)
				}
				if !seen[k] {
					seen[k] = true
					queue = append(queue, *next)
				}
			})
		}
	}
}

// A member that is hidden again after it was shown, though nothing else has changed, is
// found in its history, too, whether that comes back to where it was or not.
func TestAMemberIsHiddenAndShownInTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		between func(*state)
		want    Promise
	}{
		"nothing between":         {func(*state) {}, Steady},
		"claims are given others": {(*state).startOver, Kept},
	} {
		t.Run(name, func(t *testing.T) {
			s, got := initial(), Kept
			for _, w := range []what{wasHidden, wasShown} {
				s.patch(0, w, &got)
				s.see()
			}
			if got != Kept {
				t.Errorf("hidden and shown once: %q", got)
			}
			tc.between(&s)
			if s.patch(0, wasHidden, &got); got != tc.want {
				t.Errorf("hidden again: %q, want %q", got, tc.want)
			}
		})
	}
}
