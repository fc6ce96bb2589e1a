package platform

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestANamespaceThatCannotBeRead(t *testing.T) {
	for name, n := range map[string]Namespace{
		"nobody reads it": {},
		"the read ends": StartNamespace(t.Context(), "ns", func(context.Context, string) (map[string]string, error) {
			runtime.Goexit()
			return nil, nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			if labels, err := n.Labels(); err == nil {
				t.Errorf("Labels() = %v, want an error", labels)
			}
		})
	}
}

// Nobody waits for a namespace that nobody asks for, and one is read before the rest of
// the time is up.
func TestLaterNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		asks, waits bool
		want        int
	}{
		"nobody asks":                {want: 0},
		"asked for":                  {asks: true, want: 1},
		"everything else takes long": {waits: true, want: 1},
		"that, and it is asked for":  {waits: true, asks: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var reads atomic.Int32
				begun := make(chan struct{})
				n := LaterNamespace(ctx, "ns", func(context.Context, string) (map[string]string, error) {
					if reads.Add(1) == 1 {
						close(begun)
					}
					return map[string]string{"a": "b"}, nil
				}, time.Second)
				if tc.waits {
					start := time.Now()
					<-begun
					if at := time.Since(start); at != time.Second {
						t.Errorf("read after %s by the bubble's clock, want %s", at, time.Second)
					}
				}
				if tc.asks {
					for range 2 {
						if labels, err := n.Labels(); err != nil || labels["a"] != "b" {
							t.Errorf("Labels() = %v, %v", labels, err)
						}
					}
				}
				cancel()
				// The clock of the bubble: whatever was to be read has been by then.
				<-time.After(time.Hour)
				if got := int(reads.Load()); got != tc.want || !n.Started() {
					t.Errorf("%d reads, want %d", got, tc.want)
				}
			})
		})
	}
}
