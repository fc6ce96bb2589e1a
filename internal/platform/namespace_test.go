package platform

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespaceCache shows one namespace, or fails.
type namespaceCache struct {
	client.Reader
	labels map[string]string
	failed error
}

func (c namespaceCache) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetLabels(c.labels)
	return c.failed
}

func TestCachedNamespaceLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		cache namespaceCache
		want  map[string]string
		err   error
	}{
		"shown":          {namespaceCache{labels: map[string]string{"a": "b"}}, map[string]string{"a": "b"}, nil},
		"not there":      {namespaceCache{failed: apierrors.NewNotFound(corev1.Resource("namespaces"), "ns")}, nil, nil},
		"cannot be read": {namespaceCache{failed: errAway}, nil, errAway},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := CachedNamespaceLabels(tc.cache)(t.Context(), "ns")
			if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v; labels (-want,+got):\n%s", err, tc.err, diff)
			}
		})
	}
}

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
