package liveread

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var gvr = schema.GroupVersionResource{Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxtemplates"}

func ref(name string) Ref { return Ref{GVR: gvr, Namespace: "ns", Name: name} }

// getterFunc is a Getter.
type getterFunc func(ctx context.Context, ref Ref) (*unstructured.Unstructured, error)

func (f getterFunc) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	return f(ctx, ref)
}

func versioned(rv int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGeneration(rv)
	return u
}

func TestAThousandCallersCostOneMoreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		held := make(chan struct{})
		r := NewReader(getterFunc(func(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
			if ref.Name == "held" && reads.Add(1) == 1 {
				<-held
			}
			return versioned(1), nil
		}), nil, WithTimeout(time.Hour))

		var wg sync.WaitGroup
		get := func(name string) {
			if _, err := r.Get(t.Context(), ref(name)); err != nil {
				t.Error(err)
			}
		}
		wg.Go(func() { get("held") })
		synctest.Wait()
		for range 1000 {
			wg.Go(func() { get("held") })
		}
		synctest.Wait()
		if got := reads.Load(); got != 1 {
			t.Errorf("%d reads started while the first one is held open, want 1", got)
		}
		// Callers of other objects are not held up: this returns while it is held.
		get("other")
		close(held)
		wg.Wait()
		// A caller goes on before its read is forgotten.
		synctest.Wait()
		if got := reads.Load(); got != 2 {
			t.Errorf("%d reads for 1,001 callers, want 2", got)
		}
		if len(r.objects) != 0 {
			t.Errorf("%d objects are remembered, want none", len(r.objects))
		}
	})
}

// A caller that starts after a write returned never sees the state before it,
// whatever reads are in flight and however long they take.
func TestNobodySeesTheStateBeforeAWriteThatReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stored atomic.Int64
		random := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		pause := func(limit time.Duration) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(random.Int64N(int64(limit)))
		}
		wait := func(d time.Duration) { <-time.After(d) }
		r := NewReader(getterFunc(func(ctx context.Context, _ Ref) (*unstructured.Unstructured, error) {
			wait(pause(5 * time.Millisecond))
			u := versioned(stored.Load())
			wait(pause(20 * time.Millisecond))
			return u, nil
		}), nil)

		var wg sync.WaitGroup
		wg.Go(func() {
			for range 500 {
				stored.Add(1)
				wait(pause(10 * time.Millisecond))
			}
		})
		for range 20 {
			wg.Go(func() {
				for range 200 {
					before := stored.Load()
					u, err := r.Get(t.Context(), ref("x"))
					if err != nil {
						t.Error(err)
						return
					}
					if u.GetGeneration() < before {
						t.Errorf("saw state %d after %d was stored", u.GetGeneration(), before)
						return
					}
					wait(pause(10 * time.Millisecond))
				}
			})
		}
		wg.Wait()
	})
}

func TestACallerThatGivesUp(t *testing.T) {
	type seen struct{ started, cancelled atomic.Int64 }
	setup := func() (*Reader, *seen, chan struct{}) {
		s, release := &seen{}, make(chan struct{})
		return NewReader(getterFunc(func(ctx context.Context, _ Ref) (*unstructured.Unstructured, error) {
			s.started.Add(1)
			select {
			case <-release:
				return versioned(1), nil
			case <-ctx.Done():
				s.cancelled.Add(1)
				return nil, ctx.Err()
			}
		}), nil, WithTimeout(time.Hour)), s, release
	}
	t.Run("does not end the read for the others", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s, release := setup()
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = r.Get(t.Context(), ref("x")) })
			synctest.Wait()
			wg.Go(func() {
				if _, err := r.Get(ctx, ref("x")); !errors.Is(err, context.Canceled) {
					t.Errorf("Get() error = %v, want canceled", err)
				}
			})
			wg.Go(func() {
				if _, err := r.Get(t.Context(), ref("x")); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			cancel()
			synctest.Wait()
			close(release)
			wg.Wait()
			if s.started.Load() != 2 || s.cancelled.Load() != 0 {
				t.Errorf("%d reads, %d cancelled, want 2 and 0", s.started.Load(), s.cancelled.Load())
			}
		})
	})
	t.Run("ends a read that nobody waits for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s, _ := setup()
			var wg sync.WaitGroup
			giveUp := make([]context.CancelFunc, 2)
			for i := range giveUp {
				ctx, cancel := context.WithCancel(t.Context())
				giveUp[i] = cancel
				wg.Go(func() { _, _ = r.Get(ctx, ref("x")) })
				synctest.Wait()
			}
			// The second one waits for a read that then must never start.
			giveUp[1]()
			synctest.Wait()
			giveUp[0]()
			wg.Wait()
			synctest.Wait()
			if s.started.Load() != 1 || s.cancelled.Load() != 1 || len(r.objects) != 0 {
				t.Errorf("%d reads, %d cancelled, %d objects remembered, want 1, 1 and 0",
					s.started.Load(), s.cancelled.Load(), len(r.objects))
			}
		})
	})
}

func TestAReadHasATimeOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewReader(getterFunc(func(ctx context.Context, _ Ref) (*unstructured.Unstructured, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}), nil, WithTimeout(time.Second))
		if _, err := r.Get(t.Context(), ref("x")); !errors.Is(err, context.DeadlineExceeded) || IsAbsent(err) {
			t.Errorf("Get() error = %v, want deadline exceeded", err)
		}
	})
}

func TestAPanicIsOneReadsError(t *testing.T) {
	calls := 0
	r := NewReader(getterFunc(func(context.Context, Ref) (*unstructured.Unstructured, error) {
		if calls++; calls == 1 {
			panic("boom")
		}
		return versioned(1), nil
	}), nil)
	if _, err := r.Get(t.Context(), ref("x")); err == nil {
		t.Error("the panic is no error")
	}
	if _, err := r.Get(t.Context(), ref("x")); err != nil {
		t.Errorf("the object stays wedged: %v", err)
	}
}

func BenchmarkGet(b *testing.B) {
	for _, callers := range []int{1, 100} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			r := NewReader(getterFunc(func(context.Context, Ref) (*unstructured.Unstructured, error) { return versioned(1), nil }), nil)
			b.SetParallelism(callers)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := r.Get(context.Background(), ref("x")); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
