package model

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/freshness"
)

// With all safeguards no history breaks a promise. The whole cluster takes a minute:
// make model.
func TestNoHistoryBreaksAPromise(t *testing.T) {
	r, err := new(Variant).Explore(Tiny)
	if err != nil {
		t.Fatal(err)
	}
	if r.Broken != Kept {
		t.Errorf("broken:\n%s", r.Story)
	}
	t.Logf("%d states, %d transitions, depth %d, %s", r.States, r.Transitions, r.Depth, r.Elapsed)
}

// Each safeguard is needed: without it there is a history that breaks a promise.
func TestEachSafeguardIsNeeded(t *testing.T) {
	for _, v := range slices.Concat(Variants(), Gaps()) {
		t.Run(v.Name, func(t *testing.T) {
			r, err := v.Explore(v.Bounds())
			if err != nil {
				t.Fatal(err)
			}
			if r.Broken != v.Want {
				t.Errorf("breaks %q, want %q", r.Broken, v.Want)
			}
			gap := slices.ContainsFunc(Gaps(), func(g Variant) bool { return g.Name == v.Name })
			if (r.Story.Wrong < 0) != gap {
				t.Errorf("with all safeguards step %d is refused:\n%s", r.Story.Wrong+1, r.Story)
			}
			t.Logf("%d states, %s\n%s", r.States, r.Elapsed, r.Story)
		})
	}
}

// A rule is in the model, or its operation is left out with a reason.
func TestEveryRuleIsInTheModel(t *testing.T) {
	for _, r := range freshness.Rules() {
		for _, op := range r.Operations {
			_, judged := broken[op][r.Name]
			why := Outside()[op]
			if judged == (why != "") {
				t.Errorf("rule %s on a %s: say in variants.go which promise a history breaks without it, or why it is left out", r.Name, op)
			}
		}
	}
}

// Whatever the guard can answer is met.
func TestEveryReasonIsMet(t *testing.T) {
	r, err := new(Variant).Explore(Tiny)
	if err != nil {
		t.Fatal(err)
	}
	r.Reasons[freshness.Fresh] = true
	got := slices.Sorted(maps.Keys(r.Reasons))
	want := freshness.Reasons()
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestAStateIsWhatItWasPackedFrom(t *testing.T) {
	first := initial(Small)
	all := &space{seen: map[key]struct{}{}}
	all.add(node{first.canonical(), -1})
	workers := []*explorer{new(Variant).explorer(Small)}
	for from := 0; from < 30_000; {
		to := len(all.nodes)
		all.expand(workers, from, to)
		for _, n := range workers[0].fresh {
			all.add(n)
		}
		from = to
	}
	for _, n := range all.nodes {
		s := n.key.unpack()
		if got := s.pack(); got != n.key {
			t.Fatalf("state %+v: packed %x, want %x", s, got, n.key)
		}
		if s.swapped().canonical() != n.key {
			t.Fatalf("state %+v is another one with its claims exchanged", s)
		}
		for _, pair := range [][2]uint8{{0, 1}, {1, 2}, {0, 2}} {
			moved := s
			moved.exchange(pair[0], pair[1])
			if moved.canonical() != n.key {
				t.Fatalf("state %+v is another one with members %v exchanged", s, pair)
			}
		}
		if s.flights[1].write != noWrite && s.turned().canonical() != n.key {
			t.Fatalf("state %+v is another one with what is on its way exchanged", s)
		}
	}
}
