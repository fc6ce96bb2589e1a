// Package fair shares what there is little of, such as CPU, between tenants.
package fair

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrFull says that too many wait already.
var ErrFull = errors.New("too many wait for their turn")

// maxWaiting bounds how many of one key wait.
const maxWaiting = 256

// Turns lets a bounded number of callers go on at once. No key has more than its
// share of the places, even while nobody else wants one, and those that wait
// take turns by key. A nil *Turns lets everybody go on.
type Turns struct {
	share int

	mu   sync.Mutex
	free int
	// taken are the places by key; a key that has none is not in it.
	taken map[string]int
	// waiting are those of one key, the first in front, and order the keys that
	// have any.
	waiting map[string][]*waiter
	order   []string
}

type waiter struct{ turn chan struct{} }

// NewTurns returns so many places, of which one key has at most share.
func NewTurns(places, share int) *Turns {
	return &Turns{free: places, share: share, taken: map[string]int{}, waiting: map[string][]*waiter{}}
}

// Take waits for a place, which done gives back. The error says that the caller
// got none: ctx ended, or ErrFull.
func (t *Turns) Take(ctx context.Context, key string) (done func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := t.enter(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.turn:
	case <-ctx.Done():
		t.leave(key, w)
		return nil, fmt.Errorf("waiting for a turn: %w", ctx.Err())
	}
	return sync.OnceFunc(func() { t.give(key) }), nil
}

func (t *Turns) enter(key string) (*waiter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting[key]) >= maxWaiting {
		return nil, ErrFull
	}
	w := &waiter{turn: make(chan struct{})}
	if len(t.waiting[key]) == 0 {
		t.order = append(t.order, key)
	}
	t.waiting[key] = append(t.waiting[key], w)
	t.next()
	return w, nil
}

// next gives free places to those whose turn it is. The lock is held.
func (t *Turns) next() {
	for passed := 0; t.free > 0 && passed < len(t.order); {
		key := t.order[0]
		t.order = t.order[1:]
		if t.taken[key] >= t.share {
			t.order = append(t.order, key)
			passed++
			continue
		}
		passed = 0
		w := t.waiting[key][0]
		t.free--
		t.taken[key]++
		close(w.turn)
		if t.waiting[key] = t.waiting[key][1:]; len(t.waiting[key]) == 0 {
			delete(t.waiting, key)
		} else {
			t.order = append(t.order, key)
		}
	}
}

func (t *Turns) give(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	if t.taken[key]--; t.taken[key] == 0 {
		delete(t.taken, key)
	}
	t.next()
}

// leave takes one that gave up out of the queue; the place it was given in the
// meantime goes on to the next.
func (t *Turns) leave(key string, w *waiter) {
	t.mu.Lock()
	for i, other := range t.waiting[key] {
		if other != w {
			continue
		}
		t.waiting[key] = append(t.waiting[key][:i:i], t.waiting[key][i+1:]...)
		if len(t.waiting[key]) == 0 {
			delete(t.waiting, key)
			for j, k := range t.order {
				if k == key {
					t.order = append(t.order[:j:j], t.order[j+1:]...)
					break
				}
			}
		}
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	t.give(key)
}
