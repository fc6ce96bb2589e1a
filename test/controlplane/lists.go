package controlplane

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lists says what becomes of the answer to who asks for all objects of a
// resource: by a LIST, or by a watch that begins with them (sendInitialEvents,
// KEP-3157). The request itself always reaches the API server.
type Lists string

const (
	// ListsWhole is how a proxy begins.
	ListsWhole Lists = ""
	// ListsHeld: nothing of it arrives until that changes. It is then as old as
	// the request.
	ListsHeld Lists = "held"
	// ListsCut: it breaks off within the first object; a watch after it.
	ListsCut Lists = "cut"
	// ListsRefused: it is a 500.
	ListsRefused Lists = "refused"
)

// cutAfter is how many bytes arrive of a LIST that is cut: fewer than an empty
// one has.
const cutAfter = 64

// SetLists makes lists of a resource arrive in another way, also those that are
// on their way already: all of them, or those of the requests, as the API server
// gets them, for which every filter is true. Filters are called more than once
// for a request, possibly for several at once.
func (p *Proxy) SetLists(group, resource string, lists Lists, filters ...func(*http.Request) bool) {
	p.pace.change(schema.GroupResource{Group: group, Resource: resource}, func(r *rule) { r.lists, r.filters = lists, filters })
}

// listsFor is what becomes of the answer to one request.
func (r rule) listsFor(request *http.Request) Lists {
	for _, filter := range r.filters {
		if !filter(request) {
			return ListsWhole
		}
	}
	return r.lists
}

// listed is the resource of which a request that watches nothing wants all.
func listed(r *http.Request) (schema.GroupResource, bool) {
	resource, rest, ok := pathResource(r.URL.Path)
	if !ok || r.Method != http.MethodGet || len(rest) > 0 || queryBool(r.URL.Query(), "watch") {
		return schema.GroupResource{}, false
	}
	return resource, true
}

func initialEvents(query url.Values) bool { return queryBool(query, "sendInitialEvents") }

// refuse makes a response a 500.
func refuse(response *http.Response) error {
	const reason = "the proxy refuses lists"
	err := response.Body.Close()
	response.StatusCode, response.Status = http.StatusInternalServerError, "500 "+reason
	response.Header = http.Header{"Content-Type": {"text/plain"}}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader([]byte(reason))), int64(len(reason))
	return err
}

// listBody is the body of a LIST, delivered at its resource's pace.
type listBody struct {
	io.ReadCloser
	pace      *pace
	resource  schema.GroupResource
	request   *http.Request
	delivered int
	closed    chan struct{}
	once      sync.Once
}

func newListBody(response *http.Response, pace *pace, resource schema.GroupResource) *listBody {
	return &listBody{
		ReadCloser: response.Body, request: response.Request, pace: pace, resource: resource, closed: make(chan struct{}),
	}
}

// Read blocks while lists are held.
func (b *listBody) Read(p []byte) (int, error) {
	for {
		r, changed := b.pace.get(b.resource)
		switch r.listsFor(b.request) {
		case ListsCut, ListsRefused:
			if b.delivered >= cutAfter {
				return 0, io.ErrUnexpectedEOF
			}
			p = p[:min(len(p), cutAfter-b.delivered)]
		case ListsHeld:
			select {
			case <-changed:
				continue
			case <-b.closed:
				return 0, io.ErrClosedPipe
			}
		}
		n, err := b.ReadCloser.Read(p)
		b.delivered += n
		return n, err
	}
}

// Close ends the answer, whatever is still to be delivered.
func (b *listBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}
