package revision

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func variables(value string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{name: V%d, value: %s}, ", i, value)
	}
	return "{containers: [{name: c, env: [" + b.String() + "]}]}"
}

func TestBudget(t *testing.T) {
	want, got := mustPod(t, variables("a", 500)), mustPod(t, variables("b", 500))
	late := errors.New("it is late")
	cases := map[string]struct {
		budget *Budget
		err    error
		spent  int // at most
	}{
		"none":     {nil, nil, 0},
		"enough":   {NewBudget(100_000, nil), nil, 10_000},
		"too few":  {NewBudget(1000, nil), ErrBudget, 2100},
		"too late": {NewBudget(100_000, func() error { return late }), late, 10},
		"in time":  {NewBudget(100_000, func() error { return nil }), nil, 10_000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			diffs := tc.budget.Compare(want, got, PathSet{})
			if !errors.Is(tc.budget.Err(), tc.err) {
				t.Errorf("Err() = %v, want %v", tc.budget.Err(), tc.err)
			}
			if tc.err == nil && len(diffs) != 500 {
				t.Errorf("%d differences, want 500", len(diffs))
			}
			if tc.budget.Spent() > tc.spent {
				t.Errorf("Spent() = %d, want at most %d", tc.budget.Spent(), tc.spent)
			}
			before := tc.budget.Spent()
			if tc.budget.Count(want, got, PathSet{}, 500); tc.err != nil && tc.budget.Spent() != before {
				t.Errorf("%d leaves were looked at after the end", tc.budget.Spent()-before)
			}
		})
	}
}

// What is allowed is paid for as well: each path is held against each leaf.
func TestPathsCost(t *testing.T) {
	want, got := mustPod(t, "{}"), mustPod(t, variables("b", 100))
	spent := map[int]int{}
	for _, n := range []int{0, 64, 640} {
		paths := make([]string, n)
		for i := range paths {
			paths[i] = fmt.Sprintf("podTemplate.spec.x%d", i)
		}
		b := NewBudget(1_000_000, nil)
		b.Count(want, got, mustPaths(t, paths...), 1000)
		spent[n] = b.Spent()
	}
	if spent[64] < 2*spent[0] || spent[640] < 5*spent[64] {
		t.Errorf("work by the number of paths: %v", spent)
	}
}

func TestCountIsWhatCompareLists(t *testing.T) {
	want, got := mustPod(t, variables("a", 9)), mustPod(t, variables("b", 7))
	all := len(Compare(want, got, PathSet{}))
	counts := map[int]int{}
	for _, enough := range []int{0, 1, 5, all, all + 1} {
		counts[enough] = NewBudget(10_000, nil).Count(want, got, PathSet{}, enough)
	}
	if diff := cmp.Diff(map[int]int{0: 0, 1: 1, 5: 5, all: all, all + 1: all}, counts); diff != "" {
		t.Errorf("Count() (-want,+got):\n%s", diff)
	}
}
