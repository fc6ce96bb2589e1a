package recreate

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// slotFor is how long a deleted member counts as in replacement when no ready
// one takes its place: one pool that cannot start must not hold up the others.
const slotFor = time.Minute

// Budget bounds the members that are being replaced at any moment, over all
// pools: deleted by us, and no ready member in their place yet. A pool gets no
// more than its share of what is left while others wait.
type Budget struct {
	size  int
	clock clock.PassiveClock

	mu    sync.Mutex
	slots map[types.UID][]time.Time
	// waiting are the pools that were granted less than they asked for.
	waiting map[types.UID]bool
}

// NewBudget returns a budget of size members.
func NewBudget(size int, c clock.PassiveClock) *Budget {
	return &Budget{size: size, clock: c, slots: map[types.UID][]time.Time{}, waiting: map[types.UID]bool{}}
}

// Take grants up to want more replacements to a pool.
func (b *Budget) Take(pool types.UID, want int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if want == 0 {
		delete(b.waiting, pool)
		return 0
	}
	free := b.size - b.used()
	b.waiting[pool] = true
	granted := min(want, free, max(1, free/len(b.waiting)))
	if len(b.waiting) == 1 {
		granted = min(want, free)
	}
	granted = max(granted, 0)
	if granted == want {
		delete(b.waiting, pool)
	}
	for range granted {
		b.slots[pool] = append(b.slots[pool], b.clock.Now())
	}
	return granted
}

// Return gives back what was granted to a pool and not used.
func (b *Budget) Return(pool types.UID, unused int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	slots := b.slots[pool]
	b.slots[pool] = slots[:max(0, len(slots)-unused)]
}

// used counts, and lets go of slots that were held for too long.
func (b *Budget) used() int {
	n := 0
	for pool, slots := range b.slots {
		for len(slots) > 0 && b.clock.Since(slots[0]) >= slotFor {
			slots = slots[1:]
		}
		if b.slots[pool] = slots; len(slots) == 0 {
			delete(b.slots, pool)
		}
		n += len(slots)
	}
	return n
}

// Settle says how many members a pool lacks still; more slots than that it does
// not need.
func (b *Budget) Settle(pool types.UID, lacking int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slots := b.slots[pool]; len(slots) > max(lacking, 0) {
		b.slots[pool] = slots[len(slots)-max(lacking, 0):]
	}
}

// Forget lets go of everything that a pool has.
func (b *Budget) Forget(pool types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.slots, pool)
	delete(b.waiting, pool)
}
