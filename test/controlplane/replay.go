package controlplane

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"sync"
)

// replay gives answers again that the API server gave once.
type replay struct {
	wanted func(*http.Request) bool

	mu sync.Mutex
	// answers are by method and URI.
	answers map[string]*answer
}

type answer struct {
	code   int
	header http.Header
	body   []byte
}

// Replay has requests for which wanted is true answered by the API server once, and from
// then on with the very same answer, without the API server: for those who measure what
// its client costs by itself. nil has all answered by the API server.
func (p *Proxy) Replay(wanted func(*http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replay = nil
	if wanted != nil {
		p.replay = &replay{wanted: wanted, answers: map[string]*answer{}}
	}
}

func keyOf(r *http.Request) string { return r.Method + " " + r.URL.RequestURI() }

// replayed answers a request whose answer is known.
func (p *Proxy) replayed(w http.ResponseWriter, r *http.Request) bool {
	p.mu.Lock()
	from := p.replay
	p.mu.Unlock()
	if from == nil || !from.wanted(r) {
		return false
	}
	from.mu.Lock()
	known := from.answers[keyOf(r)]
	from.mu.Unlock()
	if known == nil {
		return false
	}
	maps.Copy(w.Header(), known.header)
	w.WriteHeader(known.code)
	// Who is gone needs no answer.
	_, _ = w.Write(known.body)
	return true
}

// keep remembers an answer that is to be given again.
func (p *Proxy) keep(response *http.Response) error {
	p.mu.Lock()
	in := p.replay
	p.mu.Unlock()
	if in == nil || !in.wanted(response.Request) {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	in.mu.Lock()
	defer in.mu.Unlock()
	in.answers[keyOf(response.Request)] = &answer{code: response.StatusCode, header: response.Header.Clone(), body: body}
	return nil
}
