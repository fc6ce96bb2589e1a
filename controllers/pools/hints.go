package pools

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// hintsBuffer is how many hints may wait for a worker; more are dropped, and
// what they were about comes up again when it is next tried.
const hintsBuffer = 4096

// hint is what to look at, and how long to leave it alone before.
type hint[T comparable] struct {
	key   T
	after time.Duration
}

// hints take what admission handlers say, who must not wait, to a controller.
type hints[T comparable] chan hint[T]

func newHints[T comparable]() hints[T] { return make(hints[T], hintsBuffer) }

// note reports whether there was room for it.
func (h hints[T]) note(key T, after time.Duration) bool {
	select {
	case h <- hint[T]{key, after}:
		return true
	default:
		return false
	}
}

// feed is a source of the controller's.
func (h hints[T]) feed(ctx context.Context, q workqueue.TypedRateLimitingInterface[T]) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case next := <-h:
				q.AddAfter(next.key, next.after)
			}
		}
	}()
	return nil
}
