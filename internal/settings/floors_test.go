package settings

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/freshness"
)

func floors(t *testing.T, of ...func() (Floor, error)) Floors {
	t.Helper()
	var out Floors
	for _, f := range of {
		floor, err := f()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, floor)
	}
	return out
}

func tier(value string, enforce bool, st freshness.Strategy) func() (Floor, error) {
	selector := &metav1.LabelSelector{}
	if value != "" {
		selector.MatchLabels = map[string]string{"tier": value}
	}
	return func() (Floor, error) { return NewFloor(selector, enforce, st) }
}

func TestFloors(t *testing.T) {
	prod := map[string]string{"tier": "prod"}
	for name, tc := range map[string]struct {
		floors   Floors
		labels   map[string]string
		enforces bool
		strategy freshness.Strategy
	}{
		"none":                     {nil, prod, false, ""},
		"everywhere":               {floors(t, tier("", true, freshness.Recreate)), nil, true, freshness.Recreate},
		"selected":                 {floors(t, tier("prod", true, freshness.RollingUpdate)), prod, true, freshness.RollingUpdate},
		"not selected":             {floors(t, tier("prod", true, freshness.RollingUpdate)), map[string]string{"tier": "dev"}, false, ""},
		"no labels":                {floors(t, tier("prod", true, freshness.RollingUpdate)), nil, false, ""},
		"only a strategy":          {floors(t, tier("prod", false, freshness.Recreate)), prod, false, freshness.Recreate},
		"only enforcement":         {floors(t, tier("prod", true, "")), prod, true, ""},
		"the strictest, last":      {floors(t, tier("", false, freshness.RollingUpdate), tier("prod", true, freshness.Recreate)), prod, true, freshness.Recreate},
		"the strictest, first":     {floors(t, tier("prod", true, freshness.Recreate), tier("", false, freshness.RollingUpdate)), prod, true, freshness.Recreate},
		"a floor that says little": {floors(t, tier("prod", false, freshness.OnReplenish)), prod, false, freshness.OnReplenish},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.floors.Enforces(tc.labels); got != tc.enforces {
				t.Errorf("Enforces = %t, want %t", got, tc.enforces)
			}
			if got := tc.floors.Strategy(tc.labels); got != tc.strategy {
				t.Errorf("Strategy = %q, want %q", got, tc.strategy)
			}
		})
	}
}

func TestNewRefusesABadSelector(t *testing.T) {
	_, err := NewFloor(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}, true, "")
	if err == nil {
		t.Error("was accepted")
	}
}

func TestHasStrategy(t *testing.T) {
	if floors(t, tier("", true, "")).HasStrategy() {
		t.Error("a floor of enforcement has no strategy")
	}
	if !floors(t, tier("", true, ""), tier("a", false, freshness.Recreate)).HasStrategy() {
		t.Error("there is a floor of strategies")
	}
}
