package settings

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freshbind/freshbind/internal/freshness"
)

// Floor is the least that holds in the namespaces that it selects.
type Floor struct {
	namespaces labels.Selector
	enforce    bool
	strategy   freshness.Strategy
}

// NewFloor returns the floor of the namespaces that the selector selects; an empty
// strategy is no floor for strategies. An error says what is wrong with the
// selector.
func NewFloor(namespaces *metav1.LabelSelector, enforce bool, strategy freshness.Strategy) (Floor, error) {
	selector, err := metav1.LabelSelectorAsSelector(namespaces)
	if err != nil {
		return Floor{}, fmt.Errorf("reading the namespace selector of a floor: %w", err)
	}
	return Floor{namespaces: selector, enforce: enforce, strategy: strategy}, nil
}

// Floors hold together: the strictest counts.
type Floors []Floor

// Enforces reports whether a namespace with these labels is enforced, whatever
// else it or its pools say.
func (f Floors) Enforces(namespace map[string]string) bool {
	for _, floor := range f {
		if floor.enforce && floor.namespaces.Matches(labels.Set(namespace)) {
			return true
		}
	}
	return false
}

// Strategy is the least strict one in a namespace with these labels; "" for any.
func (f Floors) Strategy(namespace map[string]string) freshness.Strategy {
	var least freshness.Strategy
	for _, floor := range f {
		if floor.namespaces.Matches(labels.Set(namespace)) {
			least = stricter(least, floor.strategy)
		}
	}
	return least
}

// HasStrategy reports whether any floor is for strategies: only then a
// namespace's labels have to be known for a pool's strategy.
func (f Floors) HasStrategy() bool {
	for _, floor := range f {
		if floor.strategy != "" {
			return true
		}
	}
	return false
}
