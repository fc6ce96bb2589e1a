// Package kruisegateway has a double of what OpenKruise Agents' gateway keeps its
// routes in after v0.3.0 (pkg/sandboxroute): an object has a record or a fence,
// which lasts ten minutes.
package kruisegateway

import (
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"sync"
	"time"
)

const (
	// FenceRetention is how long a deletion is remembered, from its first message on.
	FenceRetention = 10 * time.Minute
	// sweepInterval is how often expired fences are looked for, by what changes routes.
	sweepInterval = time.Minute
)

// Route is a route, and the message that peers push.
type Route struct {
	Namespace, Name, ID, UID, IP, State, ResourceVersion string
}

func (r Route) key() string { return r.Namespace + "/" + r.Name }

type fence struct {
	version string
	expires time.Time
}

// Store holds routes.
type Store struct {
	now func() time.Time

	mu      sync.Mutex
	records map[string]Route
	fences  map[string]fence
	active  map[string]string
	sweeps  time.Time
}

// NewStore returns an empty store.
func NewStore(now func() time.Time) *Store {
	return &Store{now: now, records: map[string]Route{}, fences: map[string]fence{}, active: map[string]string{}}
}

// compare orders versions, which have no bound.
func compare(a, b string) int {
	x, _ := new(big.Int).SetString(a, 10)
	y, _ := new(big.Int).SetString(b, 10)
	if x == nil || y == nil {
		return -1
	}
	return x.Cmp(y)
}

// sweep drops what has expired, at most once a minute.
func (s *Store) sweep() {
	now := s.now()
	if now.Before(s.sweeps) {
		return
	}
	s.sweeps = now.Add(sweepInterval)
	maps.DeleteFunc(s.fences, func(_ string, f fence) bool { return now.After(f.expires) })
}

// Upsert installs a route that is newer than its record or fence.
func (s *Store) Upsert(next Route) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	key := next.key()
	old, ok := s.records[key]
	f, fenced := s.fences[key]
	if compare(next.ResourceVersion, "0") <= 0 ||
		ok && compare(next.ResourceVersion, old.ResourceVersion) <= 0 || fenced && compare(next.ResourceVersion, f.version) <= 0 {
		return
	}
	delete(s.fences, key)
	if ok && old.ID != next.ID && s.active[old.ID] == key {
		delete(s.active, old.ID)
	}
	s.records[key], s.active[next.ID] = next, key
}

// Delete removes a record and sets a fence. A version that is empty is that of
// the record. A fence that is there keeps its end.
func (s *Store) Delete(gone Route) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	key, version := gone.key(), gone.ResourceVersion
	old, ok := s.records[key]
	if version == "" {
		if !ok {
			return
		}
		version = old.ResourceVersion
	}
	f, fenced := s.fences[key]
	if ok && compare(version, old.ResourceVersion) < 0 || fenced && compare(version, f.version) < 0 {
		return
	}
	if !fenced {
		f.expires = s.now().Add(FenceRetention)
	}
	if ok && s.active[old.ID] == key {
		delete(s.active, old.ID)
	}
	delete(s.records, key)
	s.fences[key] = fence{version: version, expires: f.expires}
}

// Lookup returns the IP of a sandbox that is served.
func (s *Store) Lookup(id string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.records[s.active[id]]
	return r.IP, ok && r.State == "running"
}

// Refresh takes what a peer pushes.
func (s *Store) Refresh(m Route) {
	if m.State == "dead" {
		s.Delete(m)
		return
	}
	s.Upsert(m)
}

// ServeHTTP is the endpoint that peers push to, which knows no credentials.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m Route
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&m)
	switch {
	case err != nil || m.State == "dead" && m.ResourceVersion == "":
		http.Error(w, "invalid route refresh payload", http.StatusBadRequest)
		return
	case m.Namespace == "" && m.Name == "":
		// A message of an old release, which is ignored.
	default:
		s.Refresh(m)
	}
	w.WriteHeader(http.StatusNoContent)
}
