// Package recorder records, from an API server, what internal/checker judges: the versions of a warm-pool system's objects and of
// Pods, in the order in which they were stored, from a consistent start and without gaps. Where events were lost all the
// same, the recording says so. It only reads: get, list, watch.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/freshbind/freshbind/internal/checker"
)

// ErrStopped is what waiting on a recorder returns that has ended.
var ErrStopped = errors.New("the recorder has stopped")

// Sink takes every event of a recording, in order. Its error ends the recording.
type Sink interface {
	Write(e checker.Event) error
}

// Options are the recorder's settings.
type Options struct {
	// Namespace limits the recording to one namespace; empty means all.
	Namespace string
	// Platform is one of checker.Platforms, of which one is recorded at a time; empty means the first that is served.
	Platform string
	// Sink, if set, is given every event. It must not call the recorder.
	Sink Sink
	// Audit are the options of the judgement.
	Audit checker.Options
}

// Recorder records while Run runs. All methods are safe for concurrent use.
type Recorder struct {
	options Options
	// platform is what is recorded.
	platform string
	api      API
	streams  []*stream
	clock    clock.WithTicker
	retry    wait.Backoff

	mu      sync.Mutex
	history *checker.History
	changed chan struct{} // closed at the next event
	stopped error
	unread  map[checker.Resource]bool // optional ones that must not be read
}

// New looks up which API versions are served. It fails with a *NotInstalledError if the resources of no warm-pool system are.
func New(ctx context.Context, config *rest.Config, options Options) (*Recorder, error) {
	config = rest.CopyConfig(config)
	rest.AddUserAgent(config, "freshbind-audit")
	platform, api, err := discover(ctx, config, options.Platform)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	r := newRecorder(options)
	r.platform, r.api = platform, api
	for _, resource := range startOrder {
		r.streams = append(r.streams, newStream(r, resource, client, api[resource], options.Namespace))
	}
	return r, nil
}

func newRecorder(options Options) *Recorder {
	return &Recorder{
		options: options,
		clock:   clock.RealClock{},
		retry:   wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 7, Cap: 10 * time.Second},
		history: checker.NewHistory(options.Audit),
		unread:  map[checker.Resource]bool{},
		changed: make(chan struct{}),
	}
}

// Platform is the warm-pool system that is recorded.
func (r *Recorder) Platform() string { return r.platform }

// API tells which API version of each resource is recorded.
func (r *Recorder) API() API { return r.api }

// Run records until ctx ends, which is no error. It fails when the start is not possible, when the sink fails, or when the
// API server's resourceVersions do not order; a lost connection is no failure.
func (r *Recorder) Run(ctx context.Context) error {
	err := r.run(ctx)
	if ctx.Err() != nil {
		err = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = ErrStopped
	if err != nil {
		r.stopped = fmt.Errorf("%w: %w", ErrStopped, err)
	}
	r.announce()
	return err
}

func (r *Recorder) run(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	// One after the other, Sandboxes last: of whatever happens to a Sandbox from then on, the rest is known.
	var started []*stream
	for _, s := range r.streams {
		err := s.list(ctx)
		if s.resource.Optional() && refused(err) {
			log.V(2).Info("Recording goes on without a resource that cannot be read", "resource", s.resource, "reason", err.Error())
			r.mu.Lock()
			r.unread[s.resource] = true
			r.mu.Unlock()
			continue
		}
		if err != nil {
			return err
		}
		started = append(started, s)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range started {
		group.Go(func() error { return s.follow(ctx) })
	}
	return group.Wait()
}

// emit adds events to the history and calls move, with nothing of it visible to others before all is done.
func (r *Recorder) emit(move func(), events ...checker.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	move()
	for _, e := range events {
		e.SeenAt = r.clock.Now()
		if err := r.history.Add(e); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		if r.options.Sink == nil {
			continue
		}
		if err := r.options.Sink.Write(e); err != nil {
			return fmt.Errorf("write recording: %w", err)
		}
	}
	r.announce()
	return nil
}

func (r *Recorder) announce() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// View calls f with the history; f must not keep it.
func (r *Recorder) View(f func(h *checker.History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.history)
}

// Report judges everything recorded so far.
func (r *Recorder) Report() *checker.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.Judge()
}

func (r *Recorder) reads(resource checker.Resource) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.unread[resource]
}
