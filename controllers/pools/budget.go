package pools

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Budget bounds the members that are being replaced at any moment, over all
// pools: deleted by us, and no available member in their place yet. How many
// those are each pool has stored, so that a new leader starts with the truth. A
// pool gets no more than its share of what is left while others wait, and the one
// that waits for the longest gets its first. It also bounds how fast members are
// deleted.
type Budget struct {
	size int
	// wake has a pool looked at, after some time, for which there may be something.
	wake func(pool types.NamespacedName, after time.Duration)

	mu       sync.Mutex
	pace     pace
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

// Grant is what a pool asks for, or gets.
type Grant struct {
	// Replacements are how many more members may be in replacement, Deletes how many
	// may be deleted: one that never was ready, in the place of one that is in
	// replacement already, is a delete and no replacement.
	Replacements, Deletes int
}

// turn is a pool that waits for its own.
type turn struct {
	types.NamespacedName
	pool types.UID
}

// NewBudget returns a budget of size members.
func NewBudget(size int, at Pace, wake func(pool types.NamespacedName, after time.Duration)) *Budget {
	return &Budget{size: size, pace: pace{Pace: at}, wake: wake, accounts: map[types.UID]Account{}, turns: map[types.UID]*list.Element{}}
}

// Take grants up to what is wanted to a pool that has so many replacements under way.
// One that has stalled is granted no more of these.
func (b *Budget) Take(key types.NamespacedName, pool types.UID, has Account, want Grant) Grant {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(pool, has)
	// What is no replacement waits for no other pool.
	others := b.takeDeletes(key, want.Deletes-want.Replacements)
	free, _ := b.pace.free()
	replacements := b.replace(key, pool, has, want.Replacements, free)
	b.pace.take(replacements)
	return Grant{Replacements: replacements, Deletes: replacements + others}
}

// TakeDeletes grants up to so many deletes of members that nobody could be given, whatever
// else is being replaced. The pool is woken when there are more.
func (b *Budget) TakeDeletes(key types.NamespacedName, want int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeDeletes(key, want)
}

// takeDeletes has mu held.
func (b *Budget) takeDeletes(key types.NamespacedName, want int) int {
	free, _ := b.pace.free()
	granted := min(want, free)
	b.pace.take(granted)
	if granted < want {
		_, wait := b.pace.free()
		b.wake(key, wait)
	}
	return granted
}

// replace grants replacements, no more than may be deleted.
func (b *Budget) replace(key types.NamespacedName, pool types.UID, has Account, want, deletes int) int {
	if want == 0 || has.Stalled {
		b.leave(pool)
		return 0
	}
	if b.turns[pool] == nil {
		b.wait(key, pool)
	}
	free := min(b.size-b.used(pool)-has.Replacing, deletes)
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

// Return gives back deletes that were granted and not carried out.
func (b *Budget) Return(deletes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pace.take(-deletes)
}

// Exhaust has nothing deleted at once: others may have deleted as much just now.
func (b *Budget) Exhaust() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pace.exhaust()
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

// call wakes as many pools as there are members to replace, and the next one when the
// pace allows it: no other has to look at the clock. The one that just settled comes
// back by itself.
func (b *Budget) call(settled types.UID) {
	free := b.size - b.inUse
	deletes, wait := b.pace.free()
	at := b.waiting.Front()
	for n := min(free, deletes); at != nil && n > 0; at, n = at.Next(), n-1 {
		if t := at.Value.(turn); t.pool != settled {
			b.wake(t.NamespacedName, 0)
		}
	}
	if at != nil && free > deletes && wait > 0 {
		b.wake(at.Value.(turn).NamespacedName, wait)
	}
}
