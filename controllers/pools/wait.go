package pools

import (
	"sync"
	"time"
)

// wait doubles from one to the next. The zero wait has not waited yet.
type wait struct{ last time.Duration }

func (b *wait) next(first, most time.Duration) time.Duration {
	b.last = min(max(first, 2*b.last), most)
	return b.last
}

// waits are those of what waits at the moment.
type waits[K comparable] struct {
	mu    sync.Mutex
	waits map[K]wait
}

func (b *waits[K]) next(key K, first, most time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waits == nil {
		b.waits = map[K]wait{}
	}
	is := b.waits[key]
	next := is.next(first, most)
	b.waits[key] = is
	return next
}

func (b *waits[K]) forget(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waits, key)
}
