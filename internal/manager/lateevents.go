package manager

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ref "k8s.io/client-go/tools/reference"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// Claims that are refused come in bursts, right after an update, and what they do next
	// goes first: their events were a tenth of all that the API server had to do meanwhile.
	// So an event waits until none was added for eventQuiet, and maxEventDelay at most.
	eventQuiet, maxEventDelay = time.Second, 5 * time.Second
	// eventGap lies between two events: 25 a second.
	eventGap = 40 * time.Millisecond
	// maxLateEvents bounds memory, as the recorder's own queue does.
	maxLateEvents = 1000
)

// lateEvents records the events of the webhooks a little later, one after the other.
type lateEvents struct {
	recorder events.EventRecorder
	// added has room for one: it says that something waits.
	added chan struct{}

	mu      sync.Mutex
	waiting []lateEvent
	// last is when one was added last.
	last time.Time
	// lost counts what found no place.
	lost int
}

type lateEvent struct {
	added  time.Time
	record func()
}

var _ events.EventRecorder = (*lateEvents)(nil)

func newLateEvents(recorder events.EventRecorder) *lateEvents {
	return &lateEvents{recorder: recorder, added: make(chan struct{}, 1)}
}

// Eventf keeps references only: what waits must not take memory as the objects of
// tenants do. What says not what it is has no events.
func (l *lateEvents) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	about, err := ref.GetReference(scheme.Scheme, regarding)
	if err != nil {
		return
	}
	// A nil reference in an interface would not be nil.
	var with runtime.Object
	if to, err := ref.GetReference(scheme.Scheme, related); err == nil {
		with = to
	}
	text := fmt.Sprintf(note, args...)
	l.add(func() { l.recorder.Eventf(about, with, eventType, reason, action, "%s", text) })
}

func (l *lateEvents) add(record func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxLateEvents {
		l.lost++
		return
	}
	l.last = time.Now()
	l.waiting = append(l.waiting, lateEvent{l.last, record})
	select {
	case l.added <- struct{}{}:
	default:
	}
}

// Start records what is due, until ctx ends, and then all the rest at once.
func (l *lateEvents) Start(ctx context.Context) error {
	for {
		record, due, lost := l.next()
		if lost > 0 {
			logf.FromContext(ctx).Info("Events were not recorded: too many wait", "events", lost)
		}
		var timer <-chan time.Time
		added := l.added
		switch {
		case record != nil:
			record()
			timer, added = time.After(eventGap), nil
		case !due.IsZero():
			timer, added = time.After(time.Until(due)), nil
		}
		select {
		case <-ctx.Done():
			l.recordRest()
			return nil
		case <-added:
		case <-timer:
		}
	}
}

// NeedLeaderElection is false: every replica refuses.
func (*lateEvents) NeedLeaderElection() bool { return false }

// next takes the first event that waits if it is due, or returns when it is, and how
// many found no place since it was called last.
func (l *lateEvents) next() (record func(), due time.Time, lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost, l.lost = l.lost, 0
	if len(l.waiting) == 0 {
		return nil, time.Time{}, lost
	}
	first := l.waiting[0]
	due = l.last.Add(eventQuiet)
	if latest := first.added.Add(maxEventDelay); due.After(latest) {
		due = latest
	}
	if due.After(time.Now()) {
		return nil, due, lost
	}
	l.waiting = l.waiting[1:]
	return first.record, time.Time{}, lost
}

func (l *lateEvents) recordRest() {
	l.mu.Lock()
	rest := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	for _, e := range rest {
		e.record()
	}
}
