package liveread

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// slowStore is an API server whose writes and reads take effect at some time between call and return.
type slowStore struct {
	mu      sync.Mutex
	random  *rand.Rand
	states  map[string]int64
	reading map[string]int // reads of an object in flight
	most    int
}

// pass lets up to limit of the bubble's time go by, or returns the error of ctx.
func (s *slowStore) pass(ctx context.Context, limit time.Duration) error {
	s.mu.Lock()
	d := time.Duration(s.random.Int64N(int64(limit)))
	s.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write adds one to the state of an object and returns the state that it made.
func (s *slowStore) write(ctx context.Context, name string) (int64, error) {
	if err := s.pass(ctx, 4*time.Millisecond); err != nil {
		return 0, err
	}
	s.mu.Lock()
	s.states[name]++
	state := s.states[name]
	s.mu.Unlock()
	return state, s.pass(ctx, 4*time.Millisecond)
}

func (s *slowStore) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	s.reading[ref.Name]++
	s.most = max(s.most, s.reading[ref.Name])
	outcome := s.random.IntN(20)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.reading[ref.Name]--
		s.mu.Unlock()
	}()
	if err := s.pass(ctx, 3*time.Millisecond); err != nil {
		return nil, err
	}
	switch outcome {
	case 0:
		panic("of one read")
	case 1:
		return nil, errors.New("connection reset")
	}
	s.mu.Lock()
	state := s.states[ref.Name]
	s.mu.Unlock()
	return versioned(state), s.pass(ctx, 12*time.Millisecond)
}

// Many writers and readers of several objects, reads that fail, panic and take their time, callers that give up: what a caller gets is
// never older than the last write that returned before the call, and never two reads of one object are in flight.
func TestReadsAreLinearizable(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkLinearizable(t, seed) })
		})
	}
}

func checkLinearizable(t *testing.T, seed uint64) {
	store := &slowStore{random: rand.New(rand.NewPCG(seed, 764)), states: map[string]int64{}, reading: map[string]int{}}
	r := NewReader(store, nil)
	names := []string{"a", "b", "c"}
	written := map[string]*atomic.Int64{} // the newest state whose write has returned
	for _, name := range names {
		written[name] = &atomic.Int64{}
	}
	var answered, gaveUp atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		for _, name := range names {
			group.Go(func() {
				for range 40 {
					state, err := store.write(t.Context(), name)
					if err != nil {
						t.Errorf("write: %v", err)
						return
					}
					for old := written[name].Load(); old < state && !written[name].CompareAndSwap(old, state); old = written[name].Load() {
					}
				}
			})
		}
	}
	for i := range 30 {
		group.Go(func() {
			for j := range 25 {
				name := names[(i+j)%len(names)]
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i*j)%25)*time.Millisecond)
				before := written[name].Load()
				object, err := r.Get(ctx, ref(name))
				cancel()
				switch {
				case errors.Is(err, context.DeadlineExceeded):
					gaveUp.Add(1)
				case err != nil && !errors.Is(err, ErrUndecided):
					t.Errorf("Get: %v, which is not ErrUndecided", err)
				case err == nil && object.GetGeneration() < before:
					t.Errorf("Get: state %d of %s, though the write of %d had returned", object.GetGeneration(), name, before)
				case err == nil:
					answered.Add(1)
				}
			}
		})
	}
	group.Wait()
	synctest.Wait()
	if store.most != 1 {
		t.Errorf("%d reads of one object were in flight at once, want 1", store.most)
	}
	if answered.Load() < 50 || gaveUp.Load() < 50 {
		t.Errorf("%d calls were answered and %d given up: too few to prove anything", answered.Load(), gaveUp.Load())
	}
	if n := len(r.objects); n != 0 {
		t.Errorf("%d objects are remembered, want none", n)
	}
}

func TestMetricsCountReadsAndWhoSharedThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		release := make(chan struct{})
		r := NewReader(getterFunc(func(_ context.Context, ref Ref) (*unstructured.Unstructured, error) {
			switch ref.Name {
			case "absent":
				return nil, apierrors.NewNotFound(ref.GVR.GroupResource(), ref.Name)
			case "held":
				<-release
			}
			return versioned(1), nil
		}), NewMetrics(registry, gvr.Resource))
		var group sync.WaitGroup
		for range 11 {
			group.Go(func() { _, _ = r.Get(t.Context(), ref("held")) })
			synctest.Wait()
		}
		close(release)
		group.Wait()
		_, _ = r.Get(t.Context(), ref("absent"))
		_, _ = r.Get(t.Context(), Ref{GVR: gvr.GroupVersion().WithResource("widgets"), Name: "x"})

		want := `
# HELP freshbind_live_reads_joined_total Callers that shared a read with one that came before them, and so cost none.
# TYPE freshbind_live_reads_joined_total counter
freshbind_live_reads_joined_total 9
`
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "freshbind_live_reads_joined_total"); err != nil {
			t.Error(err)
		}
		got := map[string]float64{}
		for _, resource := range []string{gvr.Resource, otherResource} {
			for _, result := range results {
				if n := testutil.ToFloat64(r.metrics.reads.WithLabelValues(resource, result)); n > 0 {
					got[resource+" "+result] = n
				}
			}
		}
		if diff := cmp.Diff(map[string]float64{gvr.Resource + " found": 2, gvr.Resource + " absent": 1, "other found": 1}, got); diff != "" {
			t.Errorf("reads (-want,+got):\n%s", diff)
		}
	})
}

func TestGetRefusesWhatIsNoGet(t *testing.T) {
	cases := map[string]struct {
		over bool
		ref  Ref
		want string
	}{
		"no name":       {false, ref(""), "could not decide: get sandboxtemplates.v1beta1.extensions.agents.x-k8s.io ns/: the name is empty"},
		"caller's over": {true, ref("x"), "could not decide: get sandboxtemplates.v1beta1.extensions.agents.x-k8s.io ns/x: context canceled"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := NewReader(getterFunc(func(context.Context, Ref) (*unstructured.Unstructured, error) {
					t.Error("a read was made")
					return nil, nil
				}), nil)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.over {
					cancel()
				}
				_, err := r.Get(ctx, tc.ref)
				synctest.Wait()
				if !errors.Is(err, ErrUndecided) || IsAbsent(err) {
					t.Fatalf("Get: %v, want ErrUndecided", err)
				}
				if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
					t.Errorf("error (-want,+got):\n%s", diff)
				}
			})
		})
	}
}

func TestGettersThatMisbehaveAreUndecided(t *testing.T) {
	cases := map[string]func(context.Context, Ref) (*unstructured.Unstructured, error){
		"nothing": func(context.Context, Ref) (*unstructured.Unstructured, error) { return nil, nil },
		"panic":   func(context.Context, Ref) (*unstructured.Unstructured, error) { panic("boom") },
		"no return": func(context.Context, Ref) (*unstructured.Unstructured, error) {
			runtime.Goexit()
			return nil, nil
		},
	}
	for name, get := range cases {
		t.Run(name, func(t *testing.T) {
			m := NewMetrics(prometheus.NewRegistry(), gvr.Resource)
			r := NewReader(getterFunc(get), m)
			for range 2 {
				if object, err := r.Get(t.Context(), ref("x")); !errors.Is(err, ErrUndecided) || IsAbsent(err) || object != nil {
					t.Errorf("Get: %v, %v, want ErrUndecided", object, err)
				}
			}
			if got := testutil.ToFloat64(m.reads.WithLabelValues(gvr.Resource, resultError)); got != 2 {
				t.Errorf("reads counted as errors: got %v, want 2", got)
			}
		})
	}
}
