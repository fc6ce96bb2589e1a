package revision

import "testing"

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
