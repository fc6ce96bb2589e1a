package routeserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/freshbind/freshbind/routes"
)

// Route is what is known of a sandbox, as clients see it.
type Route struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	// Address is set only while traffic may go there.
	Address   string `json:"address,omitempty"`
	State     string `json:"state,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
	PodUID    string `json:"podUID,omitempty"`
}

func routeOf(id string, a routes.Answer) Route {
	out := Route{ID: id, Status: a.Status.String(), Reason: a.Reason.String()}
	switch a.Status {
	case routes.Serving:
		out.Address, out.PodUID = a.Address().String(), a.PodUID().String()
		fallthrough
	case routes.NotRunning, routes.Gone:
		out.State, out.Namespace, out.Name, out.UID = a.State().String(), a.Namespace(), a.Name(), a.SandboxUID().String()
	}
	return out
}

// get is GET /v1/routes/{id}.
func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !isID(id) {
		http.Error(w, invalid("id", id, "the ID of a sandbox, NAMESPACE--NAME or one of its own").Error(), http.StatusBadRequest)
		return
	}
	a := s.table.Lookup(id)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(httpCodes[a.Status])
	// A client that went away needs no answer.
	_ = json.NewEncoder(w).Encode(routeOf(id, a))
}

// Types of events of the stream.
const (
	// EventRoute has what is known of an ID now.
	EventRoute = "ROUTE"
	// EventRemoved says that there is no such sandbox any more.
	EventRemoved = "REMOVED"
	// EventBookmark has a cursor, and says how old the view is.
	EventBookmark = "BOOKMARK"
	// EventExpired ends a stream: begin again without a cursor.
	EventExpired = "EXPIRED"
)

// Event is one line of the stream.
type Event struct {
	Type  string `json:"type"`
	Route *Route `json:"route,omitempty"`
	// ResourceVersion is where to resume.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// AgeSeconds is how old the view is at most; absent when that is not known, and
	// then nothing is to be served.
	AgeSeconds *float64 `json:"ageSeconds,omitempty"`
}

const (
	// bookmarkEvery is how often a stream says how old the view is.
	bookmarkEvery = time.Second
	// writeTimeout is how long a client may take for flushEvery events.
	writeTimeout = 10 * time.Second
	flushEvery   = 256
	// maxStream is when a stream ends; clients resume.
	maxStream = time.Hour
)

// stream is GET /v1/routes?watch=true&resourceVersion=CURSOR.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "true" {
		http.Error(w, "watch: this is a stream: ask for it with watch=true", http.StatusBadRequest)
		return
	}
	from := r.URL.Query().Get("resourceVersion")
	cursor, err := routes.ParseCursor(from)
	if err != nil {
		http.Error(w, fmt.Sprintf("resourceVersion: %v: use one of this stream, or none", err), http.StatusBadRequest)
		return
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many streams are open", http.StatusTooManyRequests)
		return
	}
	s.metrics.streams.Inc()
	defer s.metrics.streams.Dec()
	if from != "" && s.table.Ready() && s.table.Changes(cursor).Reset {
		http.Error(w, "resourceVersion: it is too old: begin without one", http.StatusGone)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	f := &follower{server: s, out: json.NewEncoder(w), control: http.NewResponseController(w), cursor: cursor, resuming: from != ""}
	// The deadline for reading requests would end it.
	if err := f.control.SetReadDeadline(time.Time{}); err == nil {
		f.run(r)
	}
}

// follower is one client of the stream.
type follower struct {
	server  *Server
	out     *json.Encoder
	control *http.ResponseController
	cursor  routes.Cursor
	// resuming is set as soon as the client knows something: a sandbox that a later
	// view does not have is never told removed.
	resuming bool
}

// run sends until the client goes, falls too far behind or has had its time. No
// error is told anybody: the client sees where the stream ends.
func (f *follower) run(r *http.Request) {
	end := f.server.clock.After(maxStream)
	for {
		more, err := f.batch()
		if err != nil || more == nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-f.server.stopped:
			return
		case <-end:
			return
		case <-more:
		case <-f.server.clock.After(bookmarkEvery):
		}
	}
}

// never is for a view that is not known: what changes then is of no interest.
var never = make(chan struct{})

// batch sends what changed, and a bookmark. It returns what is closed at the
// next change, nil at the end of the stream.
func (f *follower) batch() (<-chan struct{}, error) {
	if err := f.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return nil, err
	}
	// The age is that of the view before the changes: what is removed while they are
	// sent is not among them.
	asked := f.server.clock.Now()
	age, known := f.server.table.Age()
	if !known || age > f.server.table.MaxAge() {
		return never, f.flush(Event{Type: EventBookmark})
	}
	changes := f.server.table.Changes(f.cursor)
	if changes.Reset && f.resuming {
		return nil, f.flush(Event{Type: EventExpired})
	}
	for i, id := range changes.IDs {
		a := f.server.table.Lookup(id)
		if a.Reason == routes.ViewIncomplete || a.Reason == routes.ViewTooOld {
			// The cursor stays: the rest is sent again.
			return never, f.flush(Event{Type: EventBookmark})
		}
		f.resuming = true
		if err := f.send(id, a); err != nil {
			return nil, err
		}
		if (i+1)%flushEvery == 0 {
			if err := f.flushed(); err != nil {
				return nil, err
			}
		}
	}
	f.cursor, f.resuming = changes.Next, true
	bookmark := Event{Type: EventBookmark, ResourceVersion: f.cursor.String()}
	if _, known := f.server.table.Age(); known {
		seconds := (age + f.server.clock.Since(asked)).Seconds()
		bookmark.AgeSeconds = &seconds
	}
	return changes.More, f.flush(bookmark)
}

func (f *follower) send(id string, a routes.Answer) error {
	route := routeOf(id, a)
	e := Event{Type: EventRoute, Route: &route}
	if a.Status == routes.NotFound {
		e.Type = EventRemoved
	}
	return f.out.Encode(e)
}

func (f *follower) flush(e Event) error {
	if err := f.out.Encode(e); err != nil {
		return err
	}
	return f.flushed()
}

// flushed hands over what was written, and gives the client its time anew.
func (f *follower) flushed() error {
	if err := f.control.Flush(); err != nil {
		return err
	}
	return f.control.SetWriteDeadline(time.Now().Add(writeTimeout))
}
