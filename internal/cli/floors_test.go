package cli_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// A pool is shown with the mode and strategy that hold, not those it asks for.
func TestPoolsAreShownAboveTheFloor(t *testing.T) {
	lowest, err := settings.NewFloor(&metav1.LabelSelector{}, true, freshness.Recreate)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		floors   settings.Floors
		mode     settings.Mode
		strategy freshness.Strategy
	}{
		"no floor": {nil, settings.Audit, freshness.OnReplenish},
		"a floor":  {settings.Floors{lowest}, settings.Enforce, freshness.Recreate},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, namespace("audit"), version("v1"), pool(1).Annotation("freshbind.dev/rollout-strategy", "OnReplenish").Obj())
			c.Defaults.Floors = tc.floors
			pools := judge(t, c)
			if len(pools) != 1 || pools[0].Mode != tc.mode || pools[0].Strategy != tc.strategy {
				t.Errorf("shown are %+v, want mode %s, strategy %s", pools, tc.mode, tc.strategy)
			}
		})
	}
}
