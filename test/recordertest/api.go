// Package recordertest holds an API server made for tests of what lists and watches: its watches can be broken, and its past
// be lost, at will.
package recordertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/checker"
)

// API serves agent-sandbox's resources, Pods and Namespaces, with one revision counter for all, which starts at 100.
type API struct {
	t      *testing.T
	server *httptest.Server

	mu        sync.Mutex
	settings  Settings
	pause     bool // refuse watches
	rv        int64
	compacted int64
	expired   int
	stored    map[string]map[string]*unstructured.Unstructured
	log       map[string][]change
	changed   chan struct{}
	broken    chan struct{}
	requests  []string
}

// Settings are how the API server behaves.
type Settings struct {
	// Version is the one served of agent-sandbox's groups; empty means v1beta1.
	Version string
	// Refuse is a resource that must not be read.
	Refuse string
	// ExpireByEvent answers a watch of a lost past by an event instead of a status.
	ExpireByEvent bool
	// PageSize is the number of objects in one answer to a LIST, Expire the number of continue tokens that have expired.
	PageSize, Expire int
}

type change struct {
	kind   string
	rv     int64
	object map[string]any
}

// New starts an API server that ends with the test.
func New(t *testing.T, settings Settings) *API {
	if settings.Version == "" {
		settings.Version = "v1beta1"
	}
	if settings.PageSize == 0 {
		settings.PageSize = 1000
	}
	f := &API{t: t, settings: settings, rv: 100,
		stored: map[string]map[string]*unstructured.Unstructured{}, log: map[string][]change{},
		changed: make(chan struct{}), broken: make(chan struct{})}
	f.server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// Close stops the API server; it can be called again.
func (f *API) Close() {
	f.BreakWatches()
	f.server.CloseClientConnections()
	f.server.Close()
}

// Config is a client configuration for it.
func (f *API) Config() *rest.Config { return &rest.Config{Host: f.server.URL} }

// Put stores an object, and returns its resourceVersion.
func (f *API) Put(u *unstructured.Unstructured) string {
	resource := string(checker.ResourceOf(u))
	f.mu.Lock()
	defer f.mu.Unlock()
	key := u.GetNamespace() + "/" + u.GetName()
	kind := "MODIFIED"
	if f.stored[resource][key] == nil {
		kind = "ADDED"
	}
	f.rv++
	u.SetResourceVersion(fmt.Sprint(f.rv))
	if f.stored[resource] == nil {
		f.stored[resource] = map[string]*unstructured.Unstructured{}
	}
	f.stored[resource][key] = u
	f.append(resource, change{kind, f.rv, u.Object})
	return u.GetResourceVersion()
}

// Remove deletes an object.
func (f *API) Remove(u *unstructured.Unstructured) {
	resource := string(checker.ResourceOf(u))
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.stored[resource], u.GetNamespace()+"/"+u.GetName())
	f.rv++
	last := u.DeepCopy()
	last.SetResourceVersion(fmt.Sprint(f.rv))
	f.append(resource, change{"DELETED", f.rv, last.Object})
}

// Restore puts the API server back to a state from before everything that is stored.
func (f *API) Restore() {
	f.mu.Lock()
	f.rv, f.stored, f.log = 100, map[string]map[string]*unstructured.Unstructured{}, map[string][]change{}
	f.mu.Unlock()
	f.BreakWatches()
}

// Raw sends an event as it is, whatever its resourceVersion; kind RAW is sent as MODIFIED.
func (f *API) Raw(resource, kind string, rv int64, object map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.append(resource, change{kind, rv, object})
}

func (f *API) append(resource string, c change) {
	f.log[resource] = append(f.log[resource], c)
	close(f.changed)
	f.changed = make(chan struct{})
}

// BreakWatches ends all watches.
func (f *API) BreakWatches() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.broken)
	f.broken = make(chan struct{})
}

// LoseEvents makes the past unavailable while no watch runs; write happens in between.
func (f *API) LoseEvents(write func()) {
	f.mu.Lock()
	f.pause = true
	f.mu.Unlock()
	f.BreakWatches()
	write()
	f.mu.Lock()
	f.compacted = f.rv
	f.pause = false
	f.mu.Unlock()
}

// Requests lists what was asked, as method, path and the parameters that matter.
func (f *API) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

func (f *API) serve(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	f.mu.Lock()
	f.requests = append(f.requests, strings.TrimSpace(fmt.Sprintf("%s %s watch=%s rv=%q bookmarks=%s %s", req.Method, req.URL.Path,
		q.Get("watch"), q.Get("resourceVersion"), q.Get("allowWatchBookmarks"), q.Get("fieldSelector"))))
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	resource := parts[len(parts)-1]
	version := f.settings.Version
	watching := q.Get("watch") == "true"
	refused := f.settings.Refuse == resource
	f.mu.Unlock()
	switch {
	case parts[0] == "apis" && parts[2] != version:
		f.fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case parts[0] == "apis" && len(parts) == 3:
		f.discovery(w, parts[1])
	case refused:
		f.fail(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	case watching:
		from, _ := strconv.ParseInt(q.Get("resourceVersion"), 10, 64)
		f.watch(w, req, resource, from)
	default:
		f.list(w, resource, q.Get("continue"))
	}
}

func (f *API) discovery(w http.ResponseWriter, group string) {
	list := metav1.APIResourceList{}
	resources := []checker.Resource{checker.Templates, checker.Pools, checker.Claims}
	if group == "agents.x-k8s.io" {
		resources = []checker.Resource{checker.Sandboxes}
	}
	for _, r := range resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: string(r)})
	}
	f.answer(w, list)
}

func (f *API) list(w http.ResponseWriter, resource, token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if token != "" && f.expired < f.settings.Expire {
		f.expired++
		f.fail(w, http.StatusGone, metav1.StatusReasonExpired)
		return
	}
	var keys []string
	for key := range f.stored[resource] {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	from, _ := strconv.Atoi(token)
	to := min(len(keys), from+f.settings.PageSize)
	meta := map[string]any{"resourceVersion": fmt.Sprint(f.rv)}
	if to < len(keys) {
		meta["continue"] = fmt.Sprint(to)
	}
	items := []any{}
	for _, key := range keys[from:to] {
		items = append(items, f.stored[resource][key].Object)
	}
	f.answer(w, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": meta, "items": items})
}

func (f *API) watch(w http.ResponseWriter, req *http.Request, resource string, from int64) {
	f.mu.Lock()
	// From here on it is one of those that BreakWatches ends.
	paused, broken := f.pause, f.broken
	gone, late := from < f.compacted, f.settings.ExpireByEvent
	f.mu.Unlock()
	if paused {
		f.fail(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		return
	}
	if gone && !late {
		f.fail(w, http.StatusGone, metav1.StatusReasonExpired)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if gone {
		f.line(w, "ERROR", status(http.StatusGone, metav1.StatusReasonExpired))
		return
	}
	sent := 0
	for {
		f.mu.Lock()
		if ended(broken) { // Whatever was written since is not for this watch.
			f.mu.Unlock()
			return
		}
		var out []change
		for _, c := range f.log[resource][min(sent, len(f.log[resource])):] {
			if sent++; c.rv > from || c.kind == "RAW" {
				out = append(out, c)
			}
		}
		changed := f.changed
		f.mu.Unlock()
		for _, c := range out {
			f.line(w, strings.Replace(c.kind, "RAW", "MODIFIED", 1), c.object)
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-changed:
		case <-broken:
		case <-req.Context().Done():
			return
		}
	}
}

func ended(broken <-chan struct{}) bool {
	select {
	case <-broken:
		return true
	default:
		return false
	}
}

func (f *API) line(w http.ResponseWriter, kind string, object any) {
	raw, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		f.t.Errorf("encode event: %v", err)
	}
	_, _ = w.Write(append(raw, '\n'))
}

func status(code int, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: string(reason)}
}

func (f *API) fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status(code, reason))
}

func (f *API) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		f.t.Errorf("encode answer: %v", err)
	}
}
