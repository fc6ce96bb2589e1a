package recreate

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Budget bounds the members that are being replaced at any moment, over all
// pools: deleted by us, and no available member in their place yet. How many
// those are each pool has stored, so that a new leader starts with the truth. A
// pool gets no more than its share of what is left while others wait, and the one
// that waits for the longest gets its first.
type Budget struct {
	size int
	// wake has a pool looked at for which there may be something.
	wake func(types.NamespacedName)

	mu       sync.Mutex
	accounts map[types.UID]account
	// waiting are the pools that were granted less than they asked for, those
	// that wait for the longest first.
	waiting []turn
}

// account is what a pool has of the budget.
type account struct {
	replacing int
	// stalled: nobody expects its members to be replaced any more. They do not
	// hold up other pools, or one broken template would for ever, but this one gets
	// nothing before one of them is. Once it goes on they count again, and nobody
	// gets anything until there is room.
	stalled bool
}

// turn is a pool that waits for its own.
type turn struct {
	types.NamespacedName
	pool types.UID
}

// NewBudget returns a budget of size members.
func NewBudget(size int, wake func(types.NamespacedName)) *Budget {
	return &Budget{size: size, wake: wake, accounts: map[types.UID]account{}}
}

// Take grants up to want more replacements to a pool that has so many under way.
// One that has stalled is granted none.
func (b *Budget) Take(key types.NamespacedName, pool types.UID, has account, want int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(pool, has)
	free := b.size - b.used(pool) - has.replacing
	place := b.place(pool)
	if want == 0 || has.stalled {
		b.leave(place)
		return 0
	}
	if place < 0 {
		place = len(b.waiting)
		b.waiting = append(b.waiting, turn{key, pool})
	}
	if place >= free {
		return 0
	}
	granted := min(want, max(1, free/len(b.waiting)))
	b.leave(place)
	if granted < want {
		b.waiting = append(b.waiting, turn{key, pool})
	}
	has.replacing += granted
	b.set(pool, has)
	return granted
}

// Settle says what a pool has under way, and whether it goes on. Whoever waits for
// what it has no more is woken.
func (b *Budget) Settle(pool types.UID, has account, goesOn bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(pool, has)
	if !goesOn {
		// It could not use what it would get.
		b.leave(b.place(pool))
	}
	b.call(pool)
}

// Forget lets go of everything that a pool has.
func (b *Budget) Forget(pool types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.accounts, pool)
	b.leave(b.place(pool))
	b.call(pool)
}

func (b *Budget) set(pool types.UID, has account) {
	if has.replacing == 0 {
		delete(b.accounts, pool)
		return
	}
	b.accounts[pool] = has
}

// used is what all pools but one have of the budget.
func (b *Budget) used(but types.UID) int {
	n := 0
	for pool, has := range b.accounts {
		if pool != but && !has.stalled {
			n += has.replacing
		}
	}
	return n
}

func (b *Budget) place(pool types.UID) int {
	return slices.IndexFunc(b.waiting, func(t turn) bool { return t.pool == pool })
}

func (b *Budget) leave(place int) {
	if place >= 0 {
		b.waiting = slices.Delete(b.waiting, place, place+1)
	}
}

// call wakes as many pools as there are members to replace. The one that just
// settled comes back by itself.
func (b *Budget) call(settled types.UID) {
	free := min(b.size-b.used(""), len(b.waiting))
	for _, t := range b.waiting[:max(0, free)] {
		if t.pool != settled {
			b.wake(t.NamespacedName)
		}
	}
}
