package freshness

import "testing"

func TestStricter(t *testing.T) {
	order := []Strategy{"", PlatformOwned, OnReplenish, RollingUpdate, Recreate}
	for i, a := range order {
		for j, b := range order {
			if got, want := Stricter(a, b), order[max(i, j)]; got != want {
				t.Errorf("Stricter(%q, %q) = %q, want %q", a, b, got, want)
			}
		}
	}
}
