package routeserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/routes"
)

// events reads the stream.
type events struct {
	t     *testing.T
	lines *json.Decoder
}

func (w *world) follow(query string) *events {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Minute)
	w.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.http.URL+"/v1/routes?watch=true"+query, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := w.http.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("status %d", response.StatusCode)
	}
	return &events{w.t, json.NewDecoder(bufio.NewReader(response.Body))}
}

// until reads up to an event that fulfils a condition.
func (e *events) until(ok func(Event) bool) (Event, map[string]string) {
	e.t.Helper()
	seen := map[string]string{}
	for {
		var event Event
		if err := e.lines.Decode(&event); err != nil {
			e.t.Fatalf("the stream ended: %v; %v", err, seen)
		}
		if event.Route != nil {
			seen[event.Route.ID] = event.Route.Status + " " + event.Route.Address
		}
		if ok(event) {
			return event, seen
		}
	}
}

func known(e Event) bool { return e.Type == EventBookmark && e.AgeSeconds != nil }

func TestStream(t *testing.T) {
	w := filled(t)
	e := w.follow("")
	first, seen := e.until(known)
	want := map[string]string{
		"team-a--one": "Serving 10.0.0.1", "team-a--six": "Serving fd00::1", "team-a--paused": "NotRunning ", "team-a--gone": "Gone ",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("the beginning: %s", diff)
	}
	w.run("two", "10.0.0.4", routes.Running)
	_, seen = e.until(func(e Event) bool { return e.Route != nil && e.Route.Status == "Serving" })
	if seen["team-a--two"] != "Serving 10.0.0.4" {
		t.Errorf("a new sandbox is seen as %v", seen)
	}
	w.session.SandboxDeleted("team-a", "two", routes.UID{}, w.next())
	e.until(func(e Event) bool { return e.Route != nil && e.Route.ID == "team-a--two" && e.Route.Status == "Gone" })

	resumed, seen := w.follow("&resourceVersion=" + first.ResourceVersion).until(known)
	if diff := cmp.Diff(map[string]string{"team-a--two": "Gone "}, seen); diff != "" {
		t.Errorf("resumed at %s: %s", first.ResourceVersion, diff)
	}
	if _, seen = w.follow("&resourceVersion=" + resumed.ResourceVersion).until(known); len(seen) != 0 {
		t.Errorf("resumed where nothing had happened since: %v", seen)
	}
}

func TestStreamOfAnOldViewSaysNothing(t *testing.T) {
	w := filled(t)
	e := w.follow("")
	e.until(known)
	w.clock.Step(w.table.MaxAge() + 1)
	w.run("two", "10.0.0.4", routes.Running)
	if _, seen := e.until(func(e Event) bool { return e.Type == EventBookmark && e.AgeSeconds == nil }); len(seen) != 0 {
		t.Errorf("said from a view that is too old: %v", seen)
	}
	w.prove()
	e.until(func(e Event) bool { return e.Route != nil && e.Route.Address == "10.0.0.4" })
}

func TestStreamThatCannotBeResumed(t *testing.T) {
	w := filled(t)
	e := w.follow("")
	bookmark, _ := e.until(known)
	w.session = w.table.Begin()
	w.version = 0
	w.prove()
	e.until(func(e Event) bool { return e.Type == EventExpired })
	if got := w.get("/v1/routes?watch=true&resourceVersion=" + bookmark.ResourceVersion).code; got != http.StatusGone {
		t.Errorf("resuming in another view was answered %d, want 410", got)
	}
	if got := w.get("/v1/routes?watch=true&resourceVersion=x").code; got != http.StatusBadRequest {
		t.Errorf("no cursor at all was answered %d, want 400", got)
	}
	if got := w.get("/v1/routes").code; got != http.StatusBadRequest {
		t.Errorf("a list was answered %d, want 400", got)
	}
}

// slowly is a client for whom something happens before it has taken the first event.
type slowly struct {
	http.ResponseWriter
	before func()
	lines  bytes.Buffer
}

func (*slowly) SetWriteDeadline(time.Time) error { return nil }

func (*slowly) Flush() {}

func (c *slowly) Write(line []byte) (int, error) {
	if c.before != nil {
		c.before()
		c.before = nil
	}
	return c.lines.Write(line)
}

// batch has a new client take one batch, and returns its events.
func (c *slowly) batch(t *testing.T, f *follower) []Event {
	t.Helper()
	c.lines.Reset()
	f.out, f.control = json.NewEncoder(c), http.NewResponseController(c)
	if _, err := f.batch(); err != nil {
		t.Fatal(err)
	}
	var events []Event
	for lines := json.NewDecoder(&c.lines); lines.More(); {
		var e Event
		if err := lines.Decode(&e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// A client that has heard of a sandbox is not left with it when the view begins anew before the client has heard of all.
func TestStreamOfTwoViews(t *testing.T) {
	w := filled(t)
	f := &follower{server: w.server}
	c := &slowly{before: func() { w.session = w.table.Begin() }}
	heard := c.batch(t, f)
	want := []string{EventRoute, EventBookmark}
	if diff := cmp.Diff(want, types(heard)); diff != "" || heard[1].AgeSeconds != nil {
		t.Errorf("before the new view, which has no age yet (-want,+got):\n%s", diff)
	}
	w.prove()
	if diff := cmp.Diff([]string{EventExpired}, types(c.batch(t, f))); diff != "" {
		t.Errorf("once %s is in no view any more (-want,+got):\n%s", heard[0].Route.ID, diff)
	}
}

// A bookmark says how old the view is that the client was sent, however much is proven while it takes that.
func TestStreamSaysTheAgeOfWhatWasSent(t *testing.T) {
	w := filled(t)
	w.server.clock = w.clock
	c := &slowly{before: func() {
		w.clock.Step(2 * time.Second)
		w.session.SandboxDeleted("team-a", "one", routes.UID{}, w.next())
		w.session.SandboxDeleted("team-a", "six", routes.UID{}, w.next())
		w.prove()
	}}
	w.clock.Step(time.Second)
	f := &follower{server: w.server}
	heard := c.batch(t, f)
	last := heard[len(heard)-1]
	if last.AgeSeconds == nil || *last.AgeSeconds != 3 {
		t.Errorf("the bookmark is %s, want age 3: one second before the batch, two during it", show(last))
	}
	heard = c.batch(t, f)
	last = heard[len(heard)-1]
	if last.AgeSeconds == nil || *last.AgeSeconds != 0 {
		t.Errorf("the next bookmark is %s, want age 0", show(last))
	}
}

func show(e Event) string {
	text, _ := json.Marshal(e)
	return string(text)
}

func types(events []Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

func TestStreamsAreBounded(t *testing.T) {
	w := filled(t)
	for range cap(w.server.streams) {
		w.server.streams <- struct{}{}
	}
	if got := w.get("/v1/routes?watch=true").code; got != http.StatusTooManyRequests {
		t.Errorf("one stream too many was answered %d, want 429", got)
	}
}
