package freshness

import "fmt"

// Strategy is what a pool asks for when its template changes.
type Strategy string

const (
	// Recreate deletes stale members and refuses stale binds.
	Recreate Strategy = "Recreate"
	// RollingUpdate replaces stale members step by step; stale binds are as
	// the live pool says.
	RollingUpdate Strategy = "RollingUpdate"
	// OnReplenish leaves stale members alone and tolerates stale binds.
	OnReplenish Strategy = "OnReplenish"
	// PlatformOwned is a strategy in the pool's spec that is not known here:
	// staleness is left to the platform.
	PlatformOwned Strategy = "PlatformOwned"
)

// ParseStrategy returns the strategy of that name, as written in the annotation
// freshbind.dev/rollout-strategy.
func ParseStrategy(s string) (Strategy, error) {
	switch st := Strategy(s); st {
	case Recreate, RollingUpdate, OnReplenish:
		return st, nil
	}
	return "", fmt.Errorf("%q is not a strategy: use Recreate, RollingUpdate or OnReplenish", s)
}

// ResolveStrategy applies the order of precedence: the pool's annotation, its
// explicit spec, the configured default. An annotation that cannot be parsed,
// and one that asks for RollingUpdate of a pool which the platform itself
// recreates, count as Recreate, the strict reading.
func ResolveStrategy(annotation, spec string, byDefault Strategy) Strategy {
	if annotation != "" {
		st, err := ParseStrategy(annotation)
		if err != nil || st == RollingUpdate && spec == string(Recreate) {
			return Recreate
		}
		return st
	}
	switch spec {
	case "":
		return byDefault
	case string(Recreate), string(OnReplenish):
		return Strategy(spec)
	}
	return PlatformOwned
}

// strictness orders strategies by what they let claims get. What is left to the
// platform promises nothing.
var strictness = map[Strategy]int{OnReplenish: 1, RollingUpdate: 2, Recreate: 3}

// Stricter returns the stricter of two strategies; "" is none.
func Stricter(a, b Strategy) Strategy {
	if b != "" && (a == "" || strictness[b] > strictness[a]) {
		return b
	}
	return a
}
