package settings

import (
	"testing"

	"github.com/freshbind/freshbind/internal/freshness"
)

func TestResolveStrategy(t *testing.T) {
	cases := map[string]struct {
		annotation, spec string
		want             freshness.Strategy
	}{
		"nothing said":                    {"", "", freshness.RollingUpdate},
		"spec":                            {"", "Recreate", freshness.Recreate},
		"annotation wins":                 {"OnReplenish", "Recreate", freshness.OnReplenish},
		"annotation cannot be parsed":     {"recreate", "OnReplenish", freshness.Recreate},
		"rolling, while upstream deletes": {"RollingUpdate", "Recreate", freshness.Recreate},
		"rolling":                         {"RollingUpdate", "OnReplenish", freshness.RollingUpdate},
		"a strategy of theirs":            {"", "BlueGreen", freshness.PlatformOwned},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := resolveStrategy(tc.annotation, tc.spec, freshness.RollingUpdate); got != tc.want {
				t.Errorf("resolveStrategy(%q, %q) = %s, want %s", tc.annotation, tc.spec, got, tc.want)
			}
		})
	}
}

func TestStricter(t *testing.T) {
	order := []freshness.Strategy{"", freshness.PlatformOwned, freshness.OnReplenish, freshness.RollingUpdate, freshness.Recreate}
	for i, a := range order {
		for j, b := range order {
			if got, want := stricter(a, b), order[max(i, j)]; got != want {
				t.Errorf("stricter(%q, %q) = %q, want %q", a, b, got, want)
			}
		}
	}
}
