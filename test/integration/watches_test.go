package integration

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	watchtools "k8s.io/client-go/tools/watch"
)

// seeing is told of objects, one after the other.
type seeing func(event watch.EventType, o *unstructured.Unstructured)

// observe tells of what there is of a resource, as added, and from then on of every change, until the test ends.
func (s *stage) observe(client dynamic.ResourceInterface, see seeing) {
	s.t.Helper()
	list, err := client.List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	for i := range list.Items {
		see(watch.Added, &list.Items[i])
	}
	s.watchFrom(client, list.GetResourceVersion(), see)
}

// watchFrom tells of every change after a version, until the test ends or stop is called. A watch that names no version can
// begin with a state that is older than what the test has read, and one that reads too slowly is closed by the API server:
// this one begins where the test is, and goes on where it was closed.
func (s *stage) watchFrom(client dynamic.ResourceInterface, version string, see seeing) (stop func()) {
	s.t.Helper()
	w, err := watchtools.NewRetryWatcherWithContext(s.t.Context(), version, watcher{client})
	s.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if o, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Bookmark {
				see(e.Type, o)
			}
		}
	}()
	stop = sync.OnceFunc(func() { w.Stop(); <-done })
	s.t.Cleanup(stop)
	return stop
}

type watcher struct{ client dynamic.ResourceInterface }

// WatchWithContext is what a RetryWatcher asks for.
func (w watcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return w.client.Watch(ctx, options)
}
