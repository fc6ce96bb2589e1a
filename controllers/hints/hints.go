// Package hints takes what admission handlers say to controllers.
package hints

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// buffer is how many hints may wait for a worker; more are dropped, and
// what they were about comes up again when it is next tried.
const buffer = 4096

// Hint is what to look at, and how long to leave it alone before.
type Hint[T comparable] struct {
	Key   T
	After time.Duration
}

// Queue takes what admission handlers say, who must not wait, to a controller.
type Queue[T comparable] chan Hint[T]

// New returns hints of which a bounded number waits for a worker.
func New[T comparable]() Queue[T] { return make(Queue[T], buffer) }

// Note reports whether there was room for it.
func (h Queue[T]) Note(key T, after time.Duration) bool {
	select {
	case h <- Hint[T]{key, after}:
		return true
	default:
		return false
	}
}

// Feed is a source of the controller's.
func (h Queue[T]) Feed(ctx context.Context, q workqueue.TypedRateLimitingInterface[T]) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case next := <-h:
				q.AddAfter(next.Key, next.After)
			}
		}
	}()
	return nil
}
