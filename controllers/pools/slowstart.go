package pools

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
)

// firstBatch and parallel bound how many writes of one pool are in flight: the
// first few show whether the API server takes them, so that one which refuses them
// is not asked a thousand times (slow start, as the controller of ReplicaSets does
// it). The rest does not wait for the slowest of a batch.
const firstBatch, parallel = 4, 64

// slowStart runs do for 0 to n-1, and returns the first error. It stops when all of
// the first batch failed, or as many in a row as may be in flight, and when the
// lease is over.
func slowStart(ctx context.Context, n int, do func(ctx context.Context, i int) error) (first error, stopped bool) {
	w := writes{do: do}
	w.run(ctx, 0, min(n, firstBatch), firstBatch)
	w.run(ctx, firstBatch, n, parallel)
	return w.first, w.stopped
}

// writes is what became of writes so far.
type writes struct {
	do func(ctx context.Context, i int) error

	mu       sync.Mutex
	first    error
	failures int // since the last success
	stopped  bool
}

// run does those from start to end, at most so many at once.
func (w *writes) run(ctx context.Context, start, end, atOnce int) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := start; i < end && !w.over(); i++ {
		group.Go(func() error {
			w.note(w.do(ctx, i), min(end-start, atOnce))
			return nil
		})
	}
	_ = group.Wait()
}

func (w *writes) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

func (w *writes) note(err error, tolerated int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.failures = 0
		return
	}
	ended := errors.Is(err, errNotLeading)
	if w.first == nil || ended && !errors.Is(w.first, errNotLeading) {
		w.first = err
	}
	w.failures++
	w.stopped = w.stopped || ended || w.failures >= tolerated
}
