package liveread

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DefaultTimeout bounds one read. A caller that arrives while one is in flight can wait for two.
const DefaultTimeout = 2 * time.Second

// Reader reads objects live and shares reads between callers.
type Reader struct {
	getter     Getter
	metrics    *Metrics
	timeout    time.Duration
	onUnserved func(schema.GroupVersionResource)

	mu      sync.Mutex
	objects map[Ref]*reads
}

// Option changes how a Reader works.
type Option func(*Reader)

// WithTimeout bounds each read.
func WithTimeout(d time.Duration) Option {
	return func(r *Reader) { r.timeout = d }
}

// OnUnserved sets what is called after a 404 that does not name the object, which is how an API version that is not served answers.
// It runs before the callers of that read go on, so it must not block.
func OnUnserved(f func(schema.GroupVersionResource)) Option {
	return func(r *Reader) { r.onUnserved = f }
}

// NewReader returns a Reader that gets through g. m may be nil.
func NewReader(g Getter, m *Metrics, opts ...Option) *Reader {
	r := &Reader{getter: g, metrics: m, timeout: DefaultTimeout, onUnserved: func(schema.GroupVersionResource) {}, objects: map[Ref]*reads{}}
	for _, opt := range opts {
		opt(r)
	}
	return r
}

// reads of one object: the one in flight, and the one that starts when it ends.
type reads struct {
	running *read
	next    *read
}

// read is shared by all callers that wait for it. Its object and error are set before done is closed.
type read struct {
	done    chan struct{}
	cancel  context.CancelFunc // nil until it starts
	waiting int
	// of is the trace of the caller that caused it.
	of trace.SpanContext

	object *unstructured.Unstructured
	err    error
}

// Get returns the object as it was stored at some time after the call began. The object is shared with other callers: treat it as
// read-only. IsAbsent tells the error that proves absence; every other one wraps ErrUndecided. When ctx ends first, the read goes on for
// those who still wait.
func (r *Reader) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	ctx, span := startSpan(ctx, ref)
	object, err := r.read(ctx, ref)
	endSpan(span, err)
	return object, err
}

func (r *Reader) read(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	if ref.Name == "" {
		// Without a name the request would be a LIST.
		return nil, undecided(ref, errors.New("the name is empty"))
	}
	if err := ctx.Err(); err != nil {
		return nil, undecided(ref, err)
	}
	joined := r.join(ctx, ref)
	select {
	case <-joined.done:
		return joined.object, joined.err
	case <-ctx.Done():
		r.leave(ref, joined)
		return nil, undecided(ref, ctx.Err())
	}
}

// join returns a read that has not started when the caller arrived.
func (r *Reader) join(ctx context.Context, ref Ref) *read {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.objects[ref]
	switch {
	case of == nil:
		of = &reads{running: newRead(ctx)}
		r.objects[ref] = of
		r.start(ref, of)
		return of.running
	case of.next == nil:
		of.next = newRead(ctx)
	default:
		shareSpan(ctx)
		of.next.waiting++
		r.metrics.countJoined()
	}
	return of.next
}

func newRead(ctx context.Context) *read {
	return &read{done: make(chan struct{}), waiting: 1, of: trace.SpanContextFromContext(ctx)}
}

// leave cancels the read that nobody waits for.
func (r *Reader) leave(ref Ref, left *read) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left.waiting--
	if left.waiting > 0 {
		return
	}
	if left.cancel != nil {
		left.cancel()
		return
	}
	// What has not started is the object's next read.
	r.objects[ref].next = nil
}

// start runs the read that of.running is. The lock is held.
func (r *Reader) start(ref Ref, of *reads) {
	// The read must outlive the caller that caused it, if others wait.
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	this := of.running
	ctx = trace.ContextWithSpanContext(ctx, this.of)
	this.cancel = cancel
	go func() {
		defer cancel()
		defer r.finish(ref, of, this)
		defer func() {
			r.metrics.countRead(ref, this.err)
			var unserved *unservedError
			if errors.As(this.err, &unserved) {
				r.onUnserved(ref.GVR)
			}
		}()
		// This stands if the getter ends its goroutine.
		this.err = undecided(ref, errors.New("the read ended without an answer"))
		this.object, this.err = r.get(ctx, ref)
	}()
}

func (r *Reader) get(ctx context.Context, ref Ref) (object *unstructured.Unstructured, err error) {
	defer func() {
		if p := recover(); p != nil {
			object, err = nil, undecided(ref, fmt.Errorf("panic: %v", p))
		}
	}()
	object, err = r.getter.Get(ctx, ref)
	if err != nil {
		return nil, classify(ref, err)
	}
	if object == nil {
		return nil, undecided(ref, errors.New("neither an object nor an error"))
	}
	return object, nil
}

// finish answers those who wait for a read and starts the next one, if anybody waits for that.
func (r *Reader) finish(ref Ref, of *reads, ended *read) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(ended.done)
	of.running, of.next = of.next, nil
	if of.running == nil {
		delete(r.objects, ref)
		return
	}
	r.start(ref, of)
}
