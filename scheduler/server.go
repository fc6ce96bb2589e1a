package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// The paths of the verbs below a scheduler's urlPrefix.
const (
	PathPrefix     = "/scheduler"
	FilterPath     = PathPrefix + "/" + verbFilter
	PreemptPath    = PathPrefix + "/" + verbPreempt
	PrioritizePath = PathPrefix + "/" + verbPrioritize
)

// maxBody bounds a request, in bytes: a pod and the names of all nodes take less
// than 2 MiB, some hundred nodes in full (nodeCacheCapable: false) up to this.
const maxBody = 32 << 20

// Handlers returns what to serve, by path.
func (e *Extender) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		FilterPath:     handle(e.Metrics, verbFilter, e.Filter),
		PreemptPath:    handle(e.Metrics, verbPreempt, e.Preempt),
		PrioritizePath: handle(e.Metrics, verbPrioritize, e.Prioritize),
	}
}

// handle answers 200 to whatever is a request, and 4xx to what is none.
func handle[Args, Result any](m *Metrics, verb string, answer func(context.Context, *Args) *Result) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		args := new(Args)
		if status, err := decode(w, r, args); err != nil {
			m.count(verb, invalid)
			http.Error(w, err.Error(), status)
			return
		}
		body, err := json.Marshal(answer(r.Context(), args))
		m.took(verb, time.Since(start))
		if err != nil {
			http.Error(w, fmt.Sprintf("encoding the answer: %v", err), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(body); err != nil {
			logf.FromContext(r.Context()).V(2).Info("Scheduler went away", "verb", verb, "reason", err.Error())
		}
	})
}

// decode returns the status to answer with when the body is no request.
func decode(w http.ResponseWriter, r *http.Request, into any) (int, error) {
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, fmt.Errorf("method %s: use POST", r.Method)
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(into)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, fmt.Errorf("body: more than %d bytes (set nodeCacheCapable: true)", large.Limit)
	case err != nil:
		return http.StatusBadRequest, fmt.Errorf("body: not a request of kube-scheduler/extender/v1: %w", err)
	}
	return http.StatusOK, nil
}
