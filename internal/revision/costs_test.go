package revision

import (
	"errors"
	"testing"
)

// What comes in another order differs, wherever in the list that is.
func TestAnotherOrderDiffers(t *testing.T) {
	want := mustPod(t, "{initContainers: [{name: a}, {name: b}, {name: c}], containers: [{name: x}]}")
	for name, got := range map[string]string{
		"the first two": "[{name: b}, {name: a}, {name: c}]",
		"the last two":  "[{name: a}, {name: c}, {name: b}]",
		"around":        "[{name: c}, {name: a}, {name: b}]",
	} {
		t.Run(name, func(t *testing.T) {
			other := mustPod(t, "{initContainers: "+got+", containers: [{name: x}]}")
			if Equal(want, other, PathSet{}) {
				t.Error("they are said to be equal")
			}
			// Wherever the budget ends, it is an end and no panic.
			for limit := range 100 {
				b := NewBudget(limit, nil)
				if diffs := b.Compare(want, other, PathSet{}); b.Err() == nil && len(diffs) == 0 {
					t.Errorf("with a budget of %d: no difference, and no error", limit)
				}
			}
		})
	}
}

// Caches are bounded by what blueprints take, and a bind by what its comparisons cost.
func TestWhatBlueprintsAndComparisonsCost(t *testing.T) {
	small, large := mustPod(t, "{hostname: a}"), mustPod(t, "{hostname: a, containers: [{name: c, image: 'a:v1'}]}")
	if (Blueprint{}).Bytes() != 0 || small.Bytes() <= 0 || large.Bytes() <= small.Bytes() {
		t.Errorf("bytes: nothing takes %d, a small one %d, a large one %d", (Blueprint{}).Bytes(), small.Bytes(), large.Bytes())
	}
	b := NewBudget(1000, nil)
	b.Compare(small, large, PathSet{})
	if b.Spent() <= 0 {
		t.Errorf("a comparison cost %d", b.Spent())
	}
}

// Only what one side has is taken together, and only with what the same side has.
func TestWhatIsTakenTogether(t *testing.T) {
	d := func(path, want, got string) Difference {
		return Difference{Path: path, Root: "r", Want: want, Got: got}
	}
	for name, tc := range map[string]struct {
		diffs []Difference
		want  string
	}{
		"added":               {[]Difference{d("a", "", "1"), d("b", "", "2")}, "r: added (2 fields)"},
		"removed":             {[]Difference{d("a", "1", ""), d("b", "2", "")}, "r: removed (2 fields)"},
		"changed":             {[]Difference{d("a", "x", "y"), d("b", "x", "y")}, "a: changed; b: changed"},
		"changed and added":   {[]Difference{d("a", "x", "y"), d("b", "", "y")}, "a: changed; b: added"},
		"changed and removed": {[]Difference{d("a", "x", "y"), d("b", "x", "")}, "a: changed; b: removed"},
		"removed and changed": {[]Difference{d("a", "x", ""), d("b", "x", "y")}, "a: removed; b: changed"},
		"added and changed":   {[]Difference{d("a", "", "y"), d("b", "x", "y")}, "a: added; b: changed"},
		"added and removed":   {[]Difference{d("a", "", "x"), d("b", "x", "")}, "a: added; b: removed"},
		"removed and added":   {[]Difference{d("a", "x", ""), d("b", "", "x")}, "a: removed; b: added"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Summary(tc.diffs, 0); got != tc.want {
				t.Errorf("Summary() = %s, want %s", got, tc.want)
			}
		})
	}
}

// A comparison that was given up stays given up, whoever has time again.
func TestABudgetStaysSpent(t *testing.T) {
	enough := errors.New("enough")
	asked := 0
	b := NewBudget(1<<30, func() error {
		if asked++; asked == 1 {
			return enough
		}
		return nil
	})
	for _, leaves := range []int{1, 2 * askEvery, 2 * askEvery} {
		if b.spend(leaves) || !errors.Is(b.Err(), enough) {
			t.Errorf("after %d calls the error is %v, want %v", asked, b.Err(), enough)
		}
	}
}

func TestImagesOfNothing(t *testing.T) {
	if !(Blueprint{}).Images().IsZero() {
		t.Error("nothing has images")
	}
}
