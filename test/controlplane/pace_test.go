package controlplane

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
)

const bookmark = `{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"

var configMaps = schema.GroupResource{Resource: "configmaps"}

// tap is a paced watch whose source and reader a test controls. The reader reads
// all the time, as a client does.
type tap struct {
	t      *testing.T
	clock  *testingclock.FakeClock
	pace   *pace
	stream *stream
	source *io.PipeWriter
	got    chan string
	end    chan error
}

func newTap(t *testing.T, initial bool) *tap {
	t.Helper()
	cut, err := framingOf("application/json")
	if err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	reader, writer := io.Pipe()
	p := newPace(clock)
	return &tap{
		t: t, clock: clock, pace: p, source: writer,
		stream: newStream(&http.Response{Body: reader}, cut, p, configMaps, initial),
		got:    make(chan string, 100), end: make(chan error, 1),
	}
}

// read starts the reader. Frames written before are queued by then.
func (tp *tap) read() {
	go func() {
		// One frame is one line and fits: each Read returns exactly one.
		buffer := make([]byte, 4096)
		for {
			n, err := tp.stream.Read(buffer)
			if err != nil {
				tp.end <- err
				return
			}
			tp.got <- string(buffer[:n])
		}
	}()
	tp.t.Cleanup(func() { _ = tp.stream.Close() })
}

// write returns when the frames have arrived, each at the fake clock's time.
func (tp *tap) write(frames ...string) {
	tp.t.Helper()
	for _, frame := range frames {
		before := tp.arrived()
		if _, err := io.WriteString(tp.source, frame); err != nil {
			tp.t.Fatal(err)
		}
		tp.until("frame to arrive", func() bool { return tp.arrived() > before })
	}
}

// arrived counts the frames that came so far, read ones included.
func (tp *tap) arrived() int {
	tp.stream.mu.Lock()
	defer tp.stream.mu.Unlock()
	return len(tp.stream.queue) + tp.stream.gone
}

// until polls a condition that other goroutines of this process bring about.
func (tp *tap) until(what string, condition func() bool) {
	tp.t.Helper()
	deadline := time.After(10 * time.Minute)
	for !condition() {
		select {
		case <-deadline:
			tp.t.Fatalf("waited too long for %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// idle returns when the reader waits for the clock. The time may be changed only
// then: a timer that is just being made would start from the new time.
func (tp *tap) idle() {
	tp.t.Helper()
	tp.until("reader to wait for the clock", tp.clock.HasWaiters)
}

func (tp *tap) want(frames ...string) {
	tp.t.Helper()
	var got []string
	for range frames {
		select {
		case frame := <-tp.got:
			got = append(got, frame)
		case <-time.After(10 * time.Minute):
			tp.t.Fatalf("waited too long, got only %q", got)
		}
	}
	if diff := cmp.Diff(frames, got); diff != "" {
		tp.t.Errorf("delivered (-want,+got):\n%s", diff)
	}
}

func (tp *tap) wantNothing() {
	tp.t.Helper()
	select {
	case frame := <-tp.got:
		tp.t.Errorf("delivered too early: %q", frame)
	default:
	}
}

func (tp *tap) delay(d time.Duration) { tp.pace.change(configMaps, func(r *rule) { r.delay = d }) }
func (tp *tap) hold(held bool)        { tp.pace.change(configMaps, func(r *rule) { r.held = held }) }

func TestPaceDelays(t *testing.T) {
	tp := newTap(t, false)
	tp.delay(3 * time.Second)
	tp.write("a\n")
	tp.clock.Step(2 * time.Second)
	tp.write("b\n")
	tp.read()
	tp.idle()
	tp.wantNothing()
	tp.clock.Step(time.Second)
	tp.want("a\n")
	tp.idle()
	tp.wantNothing()
	tp.clock.Step(2 * time.Second)
	tp.want("b\n")

	tp.delay(0)
	tp.write("c\n")
	tp.want("c\n")
}

func TestPaceKeepsOrderWhenDelayFalls(t *testing.T) {
	tp := newTap(t, false)
	tp.delay(time.Hour)
	tp.write("a\n", "b\n")
	tp.read()
	tp.idle()
	tp.wantNothing()
	tp.clock.Step(time.Minute)
	tp.delay(30 * time.Second)
	tp.want("a\n", "b\n")

	tp.delay(time.Hour)
	tp.write("c\n")
	tp.delay(0)
	tp.write("d\n")
	tp.want("c\n", "d\n")
}

func TestPaceHolds(t *testing.T) {
	tp := newTap(t, false)
	tp.hold(true)
	tp.write("a\n", "b\n")
	tp.read()
	tp.clock.Step(time.Hour)
	// Another resource's rule says nothing about this one.
	tp.pace.change(schema.GroupResource{Resource: "pods"}, func(r *rule) { r.delay = time.Second })
	tp.wantNothing()
	tp.delay(2 * time.Hour)
	tp.hold(false)
	tp.idle()
	tp.wantNothing()
	tp.clock.Step(time.Hour)
	tp.want("a\n", "b\n")
}

func TestPaceLetsInitialObjectsPass(t *testing.T) {
	tp := newTap(t, true)
	tp.hold(true)
	tp.write("a\n", bookmark, "b\n")
	tp.read()
	tp.want("a\n", bookmark)
	tp.wantNothing()
	tp.hold(false)
	tp.want("b\n")
}

func TestPaceEndsAfterLastFrame(t *testing.T) {
	tp := newTap(t, false)
	tp.delay(time.Second)
	tp.write("a\n")
	if err := tp.source.Close(); err != nil {
		t.Fatal(err)
	}
	tp.until("end to arrive", func() bool {
		tp.stream.mu.Lock()
		defer tp.stream.mu.Unlock()
		return tp.stream.end != nil
	})
	tp.read()
	tp.idle()
	tp.wantNothing()
	tp.clock.Step(time.Second)
	tp.want("a\n")
	if err := <-tp.end; !errors.Is(err, io.EOF) {
		t.Errorf("ended with %v, want EOF", err)
	}
}

func TestPaceCloseEndsHeldWatch(t *testing.T) {
	tp := newTap(t, false)
	tp.hold(true)
	tp.write("a\n")
	tp.read()
	for range 2 {
		if err := tp.stream.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-tp.end; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("ended with %v, want a closed pipe", err)
	}
	tp.wantNothing()
}
