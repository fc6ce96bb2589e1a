package revision

import (
	"errors"
	"fmt"
)

// ErrBudget says that a comparison was given up before its end: it says nothing about what was compared.
var ErrBudget = errors.New("too much to compare")

// The costs of a comparison, in leaves looked at.
const (
	differenceCost = 8 // the path's text, above all
	pathsPerLeaf   = 8 // a leaf is held against so many allowed paths at the cost of looking at one
	askEvery       = 1024
)

// Budget bounds the work of the comparisons made with it. What they return is worth nothing once Err says so. The nil Budget has no
// bound. It is not for concurrent use.
type Budget struct {
	limit, spent int
	asked        int
	stop         func() error
	err          error
}

// NewBudget allows for so many leaves. Now and then stop is asked whether to give up earlier, and why; nil for never.
func NewBudget(leaves int, stop func() error) *Budget {
	return &Budget{limit: leaves, stop: stop}
}

// Err says why a comparison was given up; nil when none was. It wraps ErrBudget, or what stop returned.
func (b *Budget) Err() error {
	if b == nil {
		return nil
	}
	return b.err
}

// Spent is the work done so far.
func (b *Budget) Spent() int {
	if b == nil {
		return 0
	}
	return b.spent
}

// spend reports whether there is enough left.
func (b *Budget) spend(leaves int) bool {
	if b == nil {
		return true
	}
	if b.err != nil {
		return false
	}
	if b.spent += leaves; b.spent > b.limit {
		b.err = fmt.Errorf("%w: more than %d leaves", ErrBudget, b.limit)
		return false
	}
	if b.stop != nil && b.spent >= b.asked {
		b.asked = b.spent + askEvery
		if b.err = b.stop(); b.err != nil {
			return false
		}
	}
	return true
}
