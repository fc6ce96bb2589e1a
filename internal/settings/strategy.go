package settings

import (
	"fmt"

	"github.com/freshbind/freshbind/internal/freshness"
)

// ParseStrategy returns the strategy of that name, as StrategyKey and the
// configuration have it.
func ParseStrategy(s string) (freshness.Strategy, error) {
	switch st := freshness.Strategy(s); st {
	case freshness.Recreate, freshness.RollingUpdate, freshness.OnReplenish:
		return st, nil
	}
	return "", fmt.Errorf("%q is not a strategy: use %s, %s or %s", s, freshness.Recreate, freshness.RollingUpdate, freshness.OnReplenish)
}

// resolveStrategy applies the order of precedence: the pool's annotation, its
// explicit spec, the configured default. An annotation that cannot be parsed,
// and one that asks for RollingUpdate of a pool which the platform itself
// recreates, count as Recreate, the strict reading.
func resolveStrategy(annotation, spec string, byDefault freshness.Strategy) freshness.Strategy {
	if annotation != "" {
		st, err := ParseStrategy(annotation)
		if err != nil || st == freshness.RollingUpdate && spec == string(freshness.Recreate) {
			return freshness.Recreate
		}
		return st
	}
	switch spec {
	case "":
		return byDefault
	case string(freshness.Recreate), string(freshness.OnReplenish):
		return freshness.Strategy(spec)
	}
	return freshness.PlatformOwned
}

// strictness orders strategies by what they let claims get. What is left to the
// platform promises nothing, and nor does "".
var strictness = map[freshness.Strategy]int{freshness.OnReplenish: 1, freshness.RollingUpdate: 2, freshness.Recreate: 3}

// stricter returns the stricter of two strategies; "" is none.
func stricter(a, b freshness.Strategy) freshness.Strategy {
	if a == "" || strictness[b] > strictness[a] {
		return b
	}
	return a
}
