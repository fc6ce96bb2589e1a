package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
)

// configured returns the argument that has Freshbind read a file with this
// content.
func configured(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	content = fmt.Sprintf("apiVersion: %s\nkind: %s\n%s", config.APIVersion, config.Kind, content)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--config=" + path
}

// What a tenant says on the namespace and on the pool cannot go below the
// floor; where there is no floor it holds.
func TestTenantsCannotGoBelowAFloor(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, scenario.WorldOptions{Guard: fixture.Options{Args: []string{configured(t, `
floors:
- namespaceSelector: {matchLabels: {tier: prod}}
  minimumEnforcement: enforce
  minimumStrategy: Recreate
`)}}})
	s := w.namespace(t, map[string]string{settings.EnforcementKey: "audit", "tier": "prod"})
	free := w.namespace(t, nil)
	pools := map[*stage]scenario.Pool{}
	for _, in := range []*stage{s, free} {
		p := in.pool(scenario.Pool{Replicas: 3, Strategy: scenario.OnReplenish})
		in.annotate(p, settings.StrategyKey, scenario.OnReplenish)
		pools[in] = p
		in.image(p, "sandbox:v2")
	}
	s.full(pools[s], "sandbox:v2")
	s.claim(pools[s], scenario.Names("c", 3)...)
	if n := s.fresh(3).Classes[checker.Tolerated]; n != 0 {
		t.Errorf("%d claims got a stale sandbox, want none", n)
	}
	free.eventually("stale members stay where there is no floor", func(ctx context.Context) (string, bool) {
		members, err := free.Members(ctx, pools[free].Name)
		free.must(err)
		stale := 0
		for _, m := range members {
			if m.Image == "sandbox:v1" {
				stale++
			}
		}
		return fmt.Sprintf("%d of %d stale", stale, len(members)), stale == 3
	})
}
