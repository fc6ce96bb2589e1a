// Package counts reads off a recorded watch history how many members pools had at
// each instant: ready ones, ones that a claim could be given, and ones that were
// deleted and not replaced yet.
package counts

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/scenario"
)

// Log keeps what a recording tells of pools and Sandboxes. It is a
// recorder.Sink; the zero value is empty.
type Log struct {
	mu     sync.Mutex
	events []event
}

// event is one version of a pool or a Sandbox.
type event struct {
	rv   checker.RV
	seen time.Time
	// uid is the object's own, pool that of the pool whose member it is.
	uid, pool string
	kind      checker.Resource
	image     string
	// serves: the pool lets its claims have older members.
	ready, shown, gone, serves bool
}

// Write keeps an event. It has no error to return.
func (l *Log) Write(e checker.Event) error {
	if e.Object == nil {
		return nil
	}
	kept := event{
		rv: checker.RV(e.Object.GetResourceVersion()), seen: e.SeenAt,
		uid: string(e.Object.GetUID()), kind: checker.ResourceOf(e.Object),
		gone: e.Type == checker.Deleted || e.Object.GetDeletionTimestamp() != nil,
	}
	switch kept.kind {
	case checker.Pools:
		kept.serves = e.Object.GetAnnotations()[settings.AdmitKey] == string(freshness.AdmitAny)
	case checker.Sandboxes:
		kept.readMember(e.Object)
	default:
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, kept)
	return nil
}

func (e *event) readMember(sandbox *unstructured.Unstructured) {
	e.pool = scenario.PoolOf(sandbox)
	e.image = scenario.ImageOf(sandbox)
	e.ready = !agentsandbox.ReadySince(sandbox).IsZero()
	e.shown = agentsandbox.Shown(sandbox)
}

// Edit is a change of a template's image, and nothing else.
type Edit struct {
	RV    checker.RV
	At    time.Time
	Image string
}

// Instant is how things were from one event to the next, over all pools.
type Instant struct {
	At time.Time
	// Ready are members that are not being deleted; Claimable those of them that
	// are shown and of the edit's image, or of a pool that serves older ones.
	Ready, Claimable int
	// Replacing are the members deleted since the edit that had been ready, less
	// those that became ready since, pool by pool. A ready member that takes the
	// place of one that went to a claim counts as well: which of the two places
	// it takes cannot be told.
	Replacing int
}

// Since returns every instant since the edit, in the order in which the API
// server stored it.
func (l *Log) Since(edit Edit) []Instant {
	l.mu.Lock()
	events := slices.Clone(l.events)
	l.mu.Unlock()
	slices.SortStableFunc(events, func(a, b event) int {
		switch {
		case a.rv.Before(b.rv):
			return -1
		case b.rv.Before(a.rv):
			return 1
		}
		return 0
	})
	s := newState(edit.Image)
	begin := 0
	for begin < len(events) && !edit.RV.Before(events[begin].rv) {
		s.see(events[begin])
		begin++
	}
	clear(s.replacing)
	s.total.Replacing, s.total.At = 0, edit.At
	instants := []Instant{s.total}
	for _, e := range events[begin:] {
		s.see(e)
		// Two watches deliver in an order of their own.
		if e.seen.After(s.total.At) {
			s.total.At = e.seen
		}
		instants = append(instants, s.total)
	}
	return instants
}

// state is how things are after some of the events.
type state struct {
	image     string
	members   map[string]event
	everReady map[string]bool
	lost      map[string]bool
	// serves and replacing are by pool.
	serves    map[string]bool
	replacing map[string]int
	// ready and claimable are by pool, as a pool's word changes all of its members.
	byPool map[string]map[string]bool
	total  Instant
}

func newState(image string) *state {
	return &state{
		image: image, members: map[string]event{}, everReady: map[string]bool{}, lost: map[string]bool{},
		serves: map[string]bool{}, replacing: map[string]int{}, byPool: map[string]map[string]bool{},
	}
}

func (s *state) see(e event) {
	if e.kind == checker.Pools {
		s.hear(e)
		return
	}
	before := s.members[e.uid]
	s.count(before, -1)
	s.replace(before, e)
	delete(s.byPool[before.pool], e.uid)
	if e.gone || e.pool == "" {
		delete(s.members, e.uid)
		return
	}
	s.members[e.uid] = e
	if s.byPool[e.pool] == nil {
		s.byPool[e.pool] = map[string]bool{}
	}
	s.byPool[e.pool][e.uid] = true
	s.count(e, 1)
}

// hear takes a pool at its word.
func (s *state) hear(e event) {
	for uid := range s.byPool[e.uid] {
		s.count(s.members[uid], -1)
	}
	s.serves[e.uid] = e.serves && !e.gone
	for uid := range s.byPool[e.uid] {
		s.count(s.members[uid], 1)
	}
}

func (s *state) count(m event, sign int) {
	if m.pool == "" || !m.ready {
		return
	}
	s.total.Ready += sign
	if m.shown && (m.image == s.image || s.serves[m.pool]) {
		s.total.Claimable += sign
	}
}

// replace follows a member that goes, or takes the place of one that went.
func (s *state) replace(before, now event) {
	switch {
	case now.gone && before.pool != "" && s.everReady[now.uid] && !s.lost[now.uid]:
		s.lost[now.uid] = true
		s.replacing[before.pool]++
		s.total.Replacing++
	case !now.gone && now.pool != "" && now.ready && !s.everReady[now.uid]:
		s.everReady[now.uid] = true
		if s.replacing[now.pool] > 0 {
			s.replacing[now.pool]--
			s.total.Replacing--
		}
	}
}

// Extremes are over all instants.
type Extremes struct{ LowestReady, LowestClaimable, MostReplacing int }

// ExtremesOf needs at least one instant.
func ExtremesOf(instants []Instant) Extremes {
	e := Extremes{LowestReady: instants[0].Ready, LowestClaimable: instants[0].Claimable}
	for _, i := range instants {
		e.LowestReady = min(e.LowestReady, i.Ready)
		e.LowestClaimable = min(e.LowestClaimable, i.Claimable)
		e.MostReplacing = max(e.MostReplacing, i.Replacing)
	}
	return e
}
