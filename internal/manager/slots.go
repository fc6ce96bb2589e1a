package manager

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// slots are the paths of the webhook server. What answers there can be
// exchanged while the server runs.
type slots struct {
	server webhook.Server
	// before puts something before what answers at a path.
	before func(path string, next http.Handler) http.Handler
	// idle answers where nothing else does.
	idle map[string]http.Handler

	mu    sync.Mutex
	slots map[string]*slot
}

type slot struct{ now atomic.Pointer[http.Handler] }

func (s *slot) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*s.now.Load()).ServeHTTP(w, r) }

// unanswered is no answer, so that the webhook's failurePolicy decides.
var unanswered = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "freshbind sees no agent-sandbox resources in this cluster yet", http.StatusServiceUnavailable)
})

func newSlots(server webhook.Server, before func(string, http.Handler) http.Handler, idle map[string]http.Handler) *slots {
	s := &slots{server: server, before: before, idle: idle, slots: map[string]*slot{}}
	s.exchange(nil)
	return s
}

// exchange has these handlers answer, and on all other paths the idle ones.
func (s *slots) exchange(handlers map[string]http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.idle)
	maps.Copy(all, handlers)
	for path := range s.slots {
		if all[path] == nil {
			all[path] = unanswered
		}
	}
	for path, handler := range all {
		known, ok := s.slots[path]
		if !ok {
			known = &slot{}
			s.slots[path] = known
		}
		known.now.Store(&handler)
		if !ok {
			s.server.Register(path, s.before(path, known))
		}
	}
}

// tray is the webhook server of one assembly: it collects handlers until they
// are put into the slots.
type tray struct {
	slots    *slots
	handlers map[string]http.Handler
	served   atomic.Bool
}

var _ webhook.Server = (*tray)(nil)

func newTray(s *slots) *tray { return &tray{slots: s, handlers: map[string]http.Handler{}} }

func (t *tray) Register(path string, hook http.Handler) { t.handlers[path] = hook }

func (*tray) NeedLeaderElection() bool { return false }

// Start does nothing: the server of the slots serves.
func (*tray) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// StartedChecker asks whether the handlers are served.
func (t *tray) StartedChecker() healthz.Checker {
	return func(r *http.Request) error {
		if !t.served.Load() {
			return errors.New("other handlers are served")
		}
		return t.slots.server.StartedChecker()(r)
	}
}

// serve puts the handlers into the slots.
func (t *tray) serve() {
	t.slots.exchange(t.handlers)
	t.served.Store(true)
}

func (t *tray) WebhookMux() *http.ServeMux { return t.slots.server.WebhookMux() }
