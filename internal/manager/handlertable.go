package manager

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// handlerTable are the paths of the webhook server. What answers there can be
// exchanged while the server runs.
type handlerTable struct {
	server webhook.Server
	// before puts something before what answers at a path.
	before func(path string, next http.Handler) http.Handler
	// idle answers where nothing else does.
	idle map[string]http.Handler

	mu     sync.Mutex
	byPath map[string]*tableEntry
	// of are the handlers of each platform, by its place among them.
	of map[int]map[string]http.Handler
}

type tableEntry struct{ now atomic.Pointer[http.Handler] }

func (s *tableEntry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*s.now.Load()).ServeHTTP(w, r)
}

// unanswered is no answer, so that the webhook's failurePolicy decides.
var unanswered = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "freshbind sees no warm-pool system in this cluster yet", http.StatusServiceUnavailable)
})

func newHandlerTable(server webhook.Server, before func(string, http.Handler) http.Handler, idle map[string]http.Handler) *handlerTable {
	s := &handlerTable{server: server, before: before, idle: idle, byPath: map[string]*tableEntry{}, of: map[int]map[string]http.Handler{}}
	s.exchange(0, nil)
	return s
}

// exchange has these handlers answer in place of those that a platform had, and the idle
// ones where no platform has any. Where two have one path, the first of them answers.
func (s *handlerTable) exchange(of int, handlers map[string]http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[of] = handlers
	all := maps.Clone(s.idle)
	for _, i := range slices.Backward(slices.Sorted(maps.Keys(s.of))) {
		maps.Copy(all, s.of[i])
	}
	for path := range s.byPath {
		if all[path] == nil {
			all[path] = unanswered
		}
	}
	for path, handler := range all {
		known, ok := s.byPath[path]
		if !ok {
			known = &tableEntry{}
			s.byPath[path] = known
		}
		known.now.Store(&handler)
		if !ok {
			s.server.Register(path, s.before(path, known))
		}
	}
}

// assemblyServer is the webhook server of one assembly: it collects handlers until they
// are put into the table.
type assemblyServer struct {
	handlerTable *handlerTable
	// of is the place of its platform among all.
	of     int
	byPath map[string]http.Handler
	served atomic.Bool
}

var _ webhook.Server = (*assemblyServer)(nil)

func newAssemblyServer(s *handlerTable, of int) *assemblyServer {
	return &assemblyServer{handlerTable: s, of: of, byPath: map[string]http.Handler{}}
}

func (t *assemblyServer) Register(path string, hook http.Handler) { t.byPath[path] = hook }

func (*assemblyServer) NeedLeaderElection() bool { return false }

// Start does nothing: the server of the table serves.
func (*assemblyServer) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// StartedChecker asks whether the handlers are served.
func (t *assemblyServer) StartedChecker() healthz.Checker {
	return func(r *http.Request) error {
		if !t.served.Load() {
			return errors.New("other handlers are served")
		}
		return t.handlerTable.server.StartedChecker()(r)
	}
}

// serve puts the handlers into the table.
func (t *assemblyServer) serve() {
	t.handlerTable.exchange(t.of, t.byPath)
	t.served.Store(true)
}

func (t *assemblyServer) WebhookMux() *http.ServeMux { return t.handlerTable.server.WebhookMux() }
