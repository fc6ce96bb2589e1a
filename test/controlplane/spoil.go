package controlplane

import (
	"context"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Spoil says what becomes of the answer to a request. One that gets none at all is
// for HoldRequests.
type Spoil string

const (
	// SpoilNot is how a proxy begins.
	SpoilNot Spoil = ""
	// SpoilBusy is a 429, in the words of API Priority and Fairness; the API server
	// does not get the request.
	SpoilBusy Spoil = "429"
	// SpoilFails is a 500; the API server does not get the request.
	SpoilFails Spoil = "500"
	// SpoilCuts breaks the body off in its middle; the API server has done what the
	// request asks for.
	SpoilCuts Spoil = "cut"
)

// spoilKey is where the proxy's handler leaves what becomes of the answer.
type spoilKey struct{}

// SpoilAnswers has spoil asked about every request, possibly about several at once;
// nil spoils none. What happens to watches that are open is up to CutWatches.
func (p *Proxy) SpoilAnswers(spoil func(*http.Request) Spoil) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spoil = spoil
}

// CutWatches breaks off the watches of a resource that are open, as a load balancer
// does. New ones are not concerned.
func (p *Proxy) CutWatches(group, resource string) {
	p.pace.change(schema.GroupResource{Group: group, Resource: resource}, func(r *rule) { r.cuts++ })
}

// spoiled answers a request if it shall not reach the API server, and otherwise
// returns it with what becomes of its answer.
func (p *Proxy) spoiled(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	p.mu.Lock()
	spoil := p.spoil
	p.mu.Unlock()
	if spoil == nil {
		return r, false
	}
	switch what := spoil(r); what {
	case SpoilBusy:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
		return r, true
	case SpoilFails:
		http.Error(w, "the proxy fails", http.StatusInternalServerError)
		return r, true
	default:
		return r.WithContext(context.WithValue(r.Context(), spoilKey{}, what)), false
	}
}

// cutBody is half of a body.
type cutBody struct {
	io.ReadCloser
	left int64
}

// halve cuts the body of a response if that is what becomes of it. One of unknown
// length keeps cutAfter bytes.
func halve(response *http.Response) {
	if response.Request.Context().Value(spoilKey{}) != SpoilCuts {
		return
	}
	left := int64(cutAfter)
	if response.ContentLength >= 0 {
		left = response.ContentLength / 2
	}
	response.Body = &cutBody{response.Body, left}
}

// Read ends with an error, where a body that is whole ends with io.EOF.
func (b *cutBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
