package cli_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/floor"
	"github.com/freshbind/freshbind/internal/freshness"
)

// A pool is shown with the mode and strategy that hold, not those it asks for.
func TestPoolsAreShownAboveTheFloor(t *testing.T) {
	lowest, err := floor.New(&metav1.LabelSelector{}, true, freshness.Recreate)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		floors         floor.Floors
		mode, strategy string
	}{
		"no floor": {nil, cli.Audit, string(freshness.OnReplenish)},
		"a floor":  {floor.Floors{lowest}, cli.Enforce, string(freshness.Recreate)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, namespace(cli.Audit), version("v1"), pool(1).Annotation("freshbind.dev/rollout-strategy", "OnReplenish").Obj())
			c.Defaults.Floors = tc.floors
			pools := judge(t, c)
			if len(pools) != 1 || pools[0].Mode != tc.mode || string(pools[0].Strategy) != tc.strategy {
				t.Errorf("shown are %+v, want mode %s, strategy %s", pools, tc.mode, tc.strategy)
			}
		})
	}
}
