package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// The paths of the verbs below a scheduler's urlPrefix.
const (
	PathPrefix     = "/scheduler"
	FilterPath     = PathPrefix + "/" + verbFilter
	PreemptPath    = PathPrefix + "/" + verbPreempt
	PrioritizePath = PathPrefix + "/" + verbPrioritize
)

const (
	// maxBody bounds a request, in bytes: a pod and the names of all nodes take less
	// than 2 MiB, some hundred nodes in full (nodeCacheCapable: false) up to this.
	maxBody = 32 << 20
	// usualBody is how much is made room for at once: a pod and 5,000 names.
	usualBody = 512 << 10
)

// Handlers returns what to serve, by path.
func (e *Extender) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		FilterPath: handle(e.Metrics, verbFilter, readQuestion, func(ctx context.Context, b []byte, q *question) ([]byte, error) {
			return q.appendFilter(b, e.Filter(ctx, &q.ExtenderArgs))
		}),
		PreemptPath: handle(e.Metrics, verbPreempt, readWhole, func(ctx context.Context, _ []byte, args *extenderv1.ExtenderPreemptionArgs) ([]byte, error) {
			return json.Marshal(e.Preempt(ctx, args))
		}),
		PrioritizePath: handle(e.Metrics, verbPrioritize, readQuestion, func(ctx context.Context, b []byte, q *question) ([]byte, error) {
			return appendPriorities(b, *e.Prioritize(ctx, &q.ExtenderArgs)), nil
		}),
	}
}

// buffers are used again by other requests: names of thousands of nodes, once as they
// come in and once as they go out, are most of what a request allocates.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func takeBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

// giveBuffer keeps none that an unusual request has made large.
func giveBuffer(b *bytes.Buffer) {
	if b.Cap() <= 2*usualBody {
		b.Reset()
		buffers.Put(b)
	}
}

// handle answers 200 to whatever is a request, and 4xx to what is none.
func handle[Args any](m *Metrics, verb string, read func(body []byte) (*Args, error), answer func(ctx context.Context, b []byte, args *Args) ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		body, response := takeBuffer(), takeBuffer()
		defer giveBuffer(body)
		defer giveBuffer(response)
		status, err := readBody(body, w, r)
		var args *Args
		if err == nil {
			if args, err = read(body.Bytes()); err != nil {
				status, err = http.StatusBadRequest, fmt.Errorf("body: not a request of kube-scheduler/extender/v1: %w", err)
			}
		}
		if err != nil {
			m.count(verb, invalid)
			http.Error(w, err.Error(), status)
			return
		}
		text, err := answer(r.Context(), response.AvailableBuffer(), args)
		m.took(verb, time.Since(start))
		if err != nil {
			http.Error(w, fmt.Sprintf("encoding the answer: %v", err), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// What it has room for by now, the next answer has, too.
		_, _ = response.Write(text)
		if _, err := w.Write(response.Bytes()); err != nil {
			logf.FromContext(r.Context()).V(2).Info("Scheduler went away", "verb", verb, "reason", err.Error())
		}
	})
}

// readBody returns the status to answer with when there is no body to read.
func readBody(b *bytes.Buffer, w http.ResponseWriter, r *http.Request) (status int, err error) {
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, fmt.Errorf("method %s: use POST", r.Method)
	}
	// What is announced may never come.
	b.Grow(int(min(max(r.ContentLength, 0), usualBody)) + bytes.MinRead)
	_, err = b.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, fmt.Errorf("body: more than %d bytes (set nodeCacheCapable: true)", large.Limit)
	case err != nil:
		return http.StatusBadRequest, fmt.Errorf("body: %w", err)
	}
	return http.StatusOK, nil
}
