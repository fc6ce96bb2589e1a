package pools

import (
	"container/list"
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
	accounts map[types.UID]Account
	// inUse is what all of them have that have not stalled.
	inUse int
	// waiting are the pools that were granted less than they asked for, those
	// that wait for the longest first, and turns are where each of them is: with
	// one template a thousand pools may wait.
	waiting list.List
	turns   map[types.UID]*list.Element
}

// Account is what a pool has of the budget.
type Account struct {
	Replacing int
	// Stalled: nobody expects its members to be replaced any more. They do not
	// hold up other pools, or one broken template would for ever, but this one gets
	// nothing before one of them is. Once it goes on they count again, and nobody
	// gets anything until there is room.
	Stalled bool
}

// turn is a pool that waits for its own.
type turn struct {
	types.NamespacedName
	pool types.UID
}

// NewBudget returns a budget of size members.
func NewBudget(size int, wake func(types.NamespacedName)) *Budget {
	return &Budget{size: size, wake: wake, accounts: map[types.UID]Account{}, turns: map[types.UID]*list.Element{}}
}

// Take grants up to want more replacements to a pool that has so many under way.
// One that has stalled is granted none.
func (b *Budget) Take(key types.NamespacedName, pool types.UID, has Account, want int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(pool, has)
	free := b.size - b.used(pool) - has.Replacing
	if want == 0 || has.Stalled {
		b.leave(pool)
		return 0
	}
	if b.turns[pool] == nil {
		b.wait(key, pool)
	}
	if !b.isAmong(pool, free) {
		return 0
	}
	granted := min(want, max(1, free/b.waiting.Len()))
	b.leave(pool)
	if granted < want {
		b.wait(key, pool)
	}
	has.Replacing += granted
	b.set(pool, has)
	return granted
}

// Settle says what a pool has under way, and whether it goes on. Whoever waits for
// what it has no more is woken.
func (b *Budget) Settle(pool types.UID, has Account, goesOn bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(pool, has)
	if !goesOn {
		// It could not use what it would get.
		b.leave(pool)
	}
	b.call(pool)
}

// Forget lets go of everything that a pool has.
func (b *Budget) Forget(pool types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(pool, Account{})
	b.leave(pool)
	b.call(pool)
}

func (b *Budget) set(pool types.UID, has Account) {
	b.inUse += has.counts() - b.accounts[pool].counts()
	if has.Replacing == 0 {
		delete(b.accounts, pool)
		return
	}
	b.accounts[pool] = has
}

// counts is what the pool has that nobody else can have.
func (a Account) counts() int {
	if a.Stalled {
		return 0
	}
	return a.Replacing
}

// used is what all pools but one have of the budget.
func (b *Budget) used(but types.UID) int { return b.inUse - b.accounts[but].counts() }

func (b *Budget) wait(key types.NamespacedName, pool types.UID) {
	b.turns[pool] = b.waiting.PushBack(turn{key, pool})
}

func (b *Budget) leave(pool types.UID) {
	if at := b.turns[pool]; at != nil {
		b.waiting.Remove(at)
		delete(b.turns, pool)
	}
}

// isAmong reports whether the pool is among the first n that wait.
func (b *Budget) isAmong(pool types.UID, n int) bool {
	for at := b.waiting.Front(); at != nil && n > 0; at, n = at.Next(), n-1 {
		if at == b.turns[pool] {
			return true
		}
	}
	return false
}

// call wakes as many pools as there are members to replace. The one that just
// settled comes back by itself.
func (b *Budget) call(settled types.UID) {
	free := b.size - b.inUse
	for at := b.waiting.Front(); at != nil && free > 0; at, free = at.Next(), free-1 {
		if t := at.Value.(turn); t.pool != settled {
			b.wake(t.NamespacedName)
		}
	}
}
