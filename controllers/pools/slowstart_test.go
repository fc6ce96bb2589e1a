package pools

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestSlowStart(t *testing.T) {
	refused := errors.New("refused")
	from := func(first int, err error) func(int) error {
		return func(i int) error {
			if i >= first {
				return err
			}
			return nil
		}
	}
	only := func(which int, err error) func(int) error {
		return func(i int) error {
			if i == which {
				return err
			}
			return nil
		}
	}
	type want struct {
		first      error
		stopped    bool
		most, past int // how many are tried at most, and at least
	}
	cases := map[string]struct {
		n      int
		answer func(int) error
		want   want
	}{
		"none":                       {0, from(0, refused), want{}},
		"all succeed":                {1000, from(1000, nil), want{most: 1000, past: 1000}},
		"one is refused":             {1000, only(0, refused), want{refused, false, 1000, 1000}},
		"all are refused":            {1000, from(0, refused), want{refused, true, firstBatch, firstBatch}},
		"a single one is refused":    {1, from(0, refused), want{refused, true, 1, 1}},
		"all the others are refused": {1000, from(firstBatch, refused), want{refused, true, firstBatch + 2*parallel, firstBatch + parallel}},
		"some are refused between others": {1000, func(i int) error {
			if i%4 == 0 {
				return refused
			}
			return nil
		}, want{refused, false, 1000, 1000}},
		"the lease ends":              {1000, from(100, errNotLeading), want{errNotLeading, true, 101 + parallel, 101}},
		"one finds the lease over":    {1000, only(100, errNotLeading), want{errNotLeading, true, 1000, 101}},
		"the lease ends in the first": {1000, from(3, errNotLeading), want{errNotLeading, true, firstBatch, firstBatch}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var tried atomic.Int64
			first, stopped := slowStart(t.Context(), tc.n, func(_ context.Context, i int) error {
				tried.Add(1)
				return tc.answer(i)
			})
			if !errors.Is(first, tc.want.first) || stopped != tc.want.stopped {
				t.Errorf("slowStart() = %v, %v; want %v, %v", first, stopped, tc.want.first, tc.want.stopped)
			}
			if n := int(tried.Load()); n < tc.want.past || n > tc.want.most {
				t.Errorf("%d tried, want %d to %d", n, tc.want.past, tc.want.most)
			}
		})
	}
}

// One that is slow holds up those that may be in flight beside it, and no others.
func TestASlowWriteHoldsUpNoOther(t *testing.T) {
	const n = 4 * parallel
	var others sync.WaitGroup
	others.Add(n - 1)
	err, _ := slowStart(t.Context(), n, func(ctx context.Context, i int) error {
		if i == firstBatch {
			others.Wait()
			return nil
		}
		others.Done()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWritesInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight atomic.Int64
		next := make(chan struct{})
		go func() {
			_, _ = slowStart(t.Context(), 10*parallel, func(context.Context, int) error {
				inFlight.Add(1)
				<-next
				inFlight.Add(-1)
				return nil
			})
			close(next)
		}()
		for _, want := range []int64{firstBatch, parallel} {
			synctest.Wait()
			if n := inFlight.Load(); n != want {
				t.Errorf("%d in flight, want %d", n, want)
			}
			for range firstBatch {
				next <- struct{}{}
			}
		}
		for range 10*parallel - 2*firstBatch {
			next <- struct{}{}
		}
		<-next
	})
}
