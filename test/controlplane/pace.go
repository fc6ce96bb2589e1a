package controlplane

import (
	"bufio"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// rule says when events of a resource may be delivered.
type rule struct {
	delay time.Duration
	held  bool
	lists Lists
	// filters say which requests lists applies to.
	filters []func(*http.Request) bool
	// cuts is how often the watches that were open have been broken off.
	cuts int
}

// wait is how long a frame that came a while ago has to wait still, unless it
// stays until the rule changes. An error ends the watch.
func (r rule) wait(a arrival, of *http.Request, first bool, ago time.Duration) (wait time.Duration, stays bool, err error) {
	if !a.initial {
		return r.delay - ago, r.held, nil
	}
	switch r.listsFor(of) {
	case ListsHeld:
		return 0, true, nil
	case ListsCut, ListsRefused:
		if !first || endsInitialEvents(a.frame) {
			return 0, false, io.ErrUnexpectedEOF
		}
	}
	return 0, false, nil
}

// pace holds the rules of a proxy.
type pace struct {
	clock clock.Clock

	mu    sync.Mutex
	rules map[schema.GroupResource]rule
	// changed is closed, and replaced, by every change.
	changed chan struct{}
}

func newPace(clock clock.Clock) *pace {
	return &pace{clock: clock, rules: map[schema.GroupResource]rule{}, changed: make(chan struct{})}
}

func (p *pace) change(resource schema.GroupResource, f func(*rule)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rules[resource]
	f(&r)
	p.rules[resource] = r
	close(p.changed)
	p.changed = make(chan struct{})
}

// get returns the rule in force and a channel that is closed when it may no
// longer be.
func (p *pace) get(resource schema.GroupResource) (rule, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rules[resource], p.changed
}

// arrival is a frame and when it came.
type arrival struct {
	frame []byte
	at    time.Time
	// initial frames are the objects that the watch begins with: for them, how
	// lists arrive is what counts.
	initial bool
}

// stream is the body of a watch response, delivered at its resource's pace. The
// source is read at once and without bound, so that time of arrival is what
// counts and no other stream of the same connection has to wait.
type stream struct {
	source   io.ReadCloser
	pace     *pace
	resource schema.GroupResource
	request  *http.Request
	cuts     int    // when the watch began
	rest     []byte // of the frame being delivered

	mu     sync.Mutex
	queue  []arrival
	gone   int           // how many frames have left the queue
	end    error         // of the source; nil while it goes on
	come   chan struct{} // has room for one: something was added
	closed chan struct{}
	once   sync.Once
}

func newStream(response *http.Response, cut framing, pace *pace, resource schema.GroupResource, initial bool) *stream {
	s := &stream{
		source: response.Body, request: response.Request, pace: pace, resource: resource,
		come: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	r, _ := pace.get(resource)
	s.cuts = r.cuts
	go s.fill(bufio.NewReader(response.Body), cut, initial)
	return s
}

// fill queues frames until the source ends, as it does when it is closed.
func (s *stream) fill(source *bufio.Reader, cut framing, initial bool) {
	for {
		frame, err := cut(source)
		s.add(arrival{frame: frame, at: s.pace.clock.Now(), initial: initial}, err)
		if err != nil {
			return
		}
		initial = initial && !endsInitialEvents(frame)
	}
}

func (s *stream) add(a arrival, end error) {
	s.mu.Lock()
	if len(a.frame) > 0 {
		s.queue = append(s.queue, a)
	}
	s.end = end
	s.mu.Unlock()
	select {
	case s.come <- struct{}{}:
	default:
	}
}

// head is the oldest frame; without one, end tells whether more can come.
func (s *stream) head() (a arrival, ok bool, end error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return arrival{}, false, s.end
	}
	return s.queue[0], true, nil
}

func (s *stream) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = s.queue[1:]
	s.gone++
}

// Read blocks until an event is due.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next makes the oldest frame the one to deliver if it is due, and otherwise
// waits for something to change.
func (s *stream) next() error {
	r, changed := s.pace.get(s.resource)
	if r.cuts > s.cuts {
		return io.ErrUnexpectedEOF
	}
	oldest, ok, end := s.head()
	if end != nil {
		return end
	}
	var due <-chan time.Time
	if ok {
		wait, stays, err := r.wait(oldest, s.request, s.gone == 0, s.pace.clock.Since(oldest.at))
		if err != nil {
			return err
		}
		if !stays && wait <= 0 {
			s.rest = oldest.frame
			s.drop()
			return nil
		}
		if !stays {
			timer := s.pace.clock.NewTimer(wait)
			defer timer.Stop()
			due = timer.C()
		}
	}
	select {
	case <-s.come:
	case <-changed:
	case <-due:
	case <-s.closed:
		return io.ErrClosedPipe
	}
	return nil
}

// Close ends the watch, whatever is still to be delivered.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.source.Close()
}
