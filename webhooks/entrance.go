package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/freshbind/freshbind/internal/fair"
)

const (
	// maxBody is more than a review of the largest objects takes that etcd stores,
	// before and after.
	maxBody = 7 << 20
	// largeBody is what decoding takes some milliseconds for.
	largeBody = 256 << 10
	// headBytes are read of a large request to find its namespace, which the API
	// server writes in front of the objects.
	headBytes = 8 << 10
	// maxWaitingBytes bounds the large requests that are in memory at once, and
	// maxNamespaceBytes those of one namespace.
	maxWaitingBytes, maxNamespaceBytes = 32 << 20, 2 * maxBody
	// readWithin bounds how long a body may take: no webhook's answer is waited for any longer.
	readWithin = 2 * time.Second
)

// Why a request is turned away. The set is closed.
const (
	turnedAwayClient = "client"
	turnedAwaySize   = "size"
	turnedAwayBusy   = "busy"
	turnedAwaySlow   = "slow"
)

// Entrance is in front of the webhooks: it answers only those who may ask, and
// lets no namespace take memory and CPU from the others. What it turns away is
// not decided; the webhook's failurePolicy says what becomes of the write.
type Entrance struct {
	// RequireCertificate answers only clients whose certificate was verified, and
	// Names, where there are any, only those with such a common name.
	RequireCertificate bool
	Names              []string
	// Large lets large requests be decoded, by namespace.
	Large *fair.Turns

	turnedAway *prometheus.CounterVec

	mu sync.Mutex
	// held are the bytes of large requests by namespace.
	held  map[string]int64
	total int64
}

// NewEntrance returns an Entrance that answers everybody.
func NewEntrance(reg prometheus.Registerer, large *fair.Turns) *Entrance {
	e := &Entrance{
		Large: large, held: map[string]int64{},
		turnedAway: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_webhook_requests_turned_away_total",
			Help: "Requests that got no answer, so that the failurePolicy decides. reason: client (no certificate of the API server), " +
				"size (larger than any object), busy (too many large requests of one namespace, or of all) or slow (a body that did not come in time).",
		}, []string{"reason"}),
	}
	for _, reason := range []string{turnedAwayClient, turnedAwaySize, turnedAwayBusy, turnedAwaySlow} {
		e.turnedAway.WithLabelValues(reason)
	}
	reg.MustRegister(e.turnedAway)
	return e
}

// Before returns next behind the entrance.
func (e *Entrance) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !e.admits(r) {
			e.refuse(w, http.StatusForbidden, turnedAwayClient, "Freshbind answers the API server only, by its client certificate")
			return
		}
		if r.ContentLength > maxBody {
			e.refuse(w, http.StatusRequestEntityTooLarge, turnedAwaySize, "the request is too large")
			return
		}
		// Somebody who sends a body byte by byte must not keep room that others need. The
		// deadline ends with the body: whoever answers may take longer.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readWithin))
		if r.ContentLength >= 0 && r.ContentLength <= largeBody {
			if body, ok := e.read(w, r.Body); ok {
				serveBody(w, r, body, next)
			}
			return
		}
		e.large(w, r, next)
	})
}

// read reads a body, or answers that it cannot.
func (e *Entrance) read(w http.ResponseWriter, from io.Reader) ([]byte, bool) {
	body, err := io.ReadAll(from)
	if err != nil {
		e.unread(w, err)
	}
	return body, err == nil
}

func (e *Entrance) unread(w http.ResponseWriter, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		e.refuse(w, http.StatusRequestTimeout, turnedAwaySlow, "the request did not come in time")
		return
	}
	http.Error(w, "the request cannot be read", http.StatusBadRequest)
}

func serveBody(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	next.ServeHTTP(w, r)
}

func (e *Entrance) admits(r *http.Request) bool {
	if !e.RequireCertificate {
		return true
	}
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}
	return len(e.Names) == 0 || slices.Contains(e.Names, r.TLS.VerifiedChains[0][0].Subject.CommonName)
}

func (e *Entrance) refuse(w http.ResponseWriter, code int, reason, message string) {
	e.turnedAway.WithLabelValues(reason).Inc()
	http.Error(w, message, code)
}

// large serves a request when there is room for it, and it is its namespace's
// turn. It is read before it waits: on a connection that others share, what is
// not read stands in their way.
func (e *Entrance) large(w http.ResponseWriter, r *http.Request, next http.Handler) {
	head := make([]byte, headBytes)
	// A body that cannot be read cannot be read any further, and is answered below.
	n, _ := io.ReadFull(r.Body, head)
	namespace, size := namespaceOf(head[:n]), r.ContentLength
	if size < 0 {
		size = maxBody
	}
	if !e.reserve(namespace, size) {
		e.refuse(w, http.StatusServiceUnavailable, turnedAwayBusy, "too many large requests at once")
		return
	}
	defer e.release(namespace, size)
	body, ok := e.read(w, io.MultiReader(bytes.NewReader(head[:n]), io.LimitReader(r.Body, maxBody-int64(n)+1)))
	switch {
	case !ok:
		return
	case len(body) > maxBody:
		e.refuse(w, http.StatusRequestEntityTooLarge, turnedAwaySize, "the request is too large")
		return
	}
	if err := e.serve(r.Context(), w, r, body, namespace, next); err != nil {
		e.refuse(w, http.StatusServiceUnavailable, turnedAwayBusy, fmt.Sprintf("too many large requests at once: %v", err))
	}
}

func (e *Entrance) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, body []byte, namespace string, next http.Handler) error {
	done, err := e.Large.Take(ctx, namespace)
	if err != nil {
		return err
	}
	defer done()
	serveBody(w, r, body, next)
	return nil
}

func (e *Entrance) reserve(namespace string, size int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.total+size > maxWaitingBytes || e.held[namespace]+size > maxNamespaceBytes {
		return false
	}
	e.total += size
	e.held[namespace] += size
	return true
}

func (e *Entrance) release(namespace string, size int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total -= size
	if e.held[namespace] -= size; e.held[namespace] == 0 {
		delete(e.held, namespace)
	}
}

// namespaceOf finds request.namespace at the beginning of an AdmissionReview; ""
// when it is not there.
func namespaceOf(head []byte) string {
	d := json.NewDecoder(bytes.NewReader(head))
	for _, key := range []string{"request", "namespace"} {
		if token, _ := d.Token(); token != json.Delim('{') {
			return ""
		}
		skipTo(d, key)
	}
	token, _ := d.Token()
	namespace, _ := token.(string)
	return namespace
}

// skipTo reads an object up to the value of a key; to its end, which is neither an
// object nor a string, when it has no such key.
func skipTo(d *json.Decoder, key string) {
	for d.More() {
		if name, err := d.Token(); err != nil || name == key {
			return
		}
		// Where this fails the next token does, too.
		_ = d.Decode(&json.RawMessage{})
	}
}
