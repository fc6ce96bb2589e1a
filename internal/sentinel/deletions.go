// Package sentinel keeps deleted sandboxes deleted in gateways of OpenKruise
// Agents, which forget a deletion after ten minutes and when they restart. It
// repeats what such a gateway would have to remember: that the sandbox is dead,
// with the version of its deletion.
package sentinel

import (
	"container/list"
	"sync"
	"time"

	"github.com/freshbind/freshbind/routes"
)

// Key names a sandbox.
type Key struct{ Namespace, Name string }

// Deletion is a sandbox that is gone, or about to be.
type Deletion struct {
	Key
	UID     string
	Version routes.Version
	// number orders deletions by when they were seen.
	number uint64
	seen   time.Time
}

// Deletions remembers the last ones.
type Deletions struct {
	limit   int
	keep    time.Duration
	metrics *Metrics

	mu     sync.Mutex
	byKey  map[Key]*list.Element
	order  *list.List
	number uint64
	wake   chan struct{}
}

// NewDeletions remembers that many deletions for that long.
func NewDeletions(limit int, keep time.Duration, metrics *Metrics) *Deletions {
	return &Deletions{limit: limit, keep: keep, metrics: metrics, byKey: map[Key]*list.Element{}, order: list.New(), wake: make(chan struct{})}
}

// Deleted remembers a deletion, unless a newer one of that name is known.
func (m *Deletions) Deleted(key Key, uid string, v routes.Version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.byKey[key]; e != nil {
		if v <= e.Value.(*Deletion).Version {
			return
		}
		m.remove(e)
	}
	m.number++
	m.byKey[key] = m.order.PushBack(&Deletion{Key: key, UID: uid, Version: v, number: m.number, seen: time.Now()})
	m.age()
	for m.order.Len() > m.limit {
		m.remove(m.order.Front())
		m.metrics.forgotten.WithLabelValues(reasonFull).Inc()
	}
	m.metrics.deletions.Set(float64(m.order.Len()))
	close(m.wake)
	m.wake = make(chan struct{})
}

// Present forgets the deletion of a sandbox whose name is in use. When the
// sandbox is older than its deletion, etcd was restored: then no version that is
// remembered means anything.
func (m *Deletions) Present(key Key, v routes.Version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byKey[key]
	if e == nil {
		return
	}
	if v < e.Value.(*Deletion).Version {
		m.metrics.forgotten.WithLabelValues(reasonRestored).Add(float64(m.order.Len()))
		m.order.Init()
		clear(m.byKey)
	} else {
		m.metrics.forgotten.WithLabelValues(reasonReturned).Inc()
		m.remove(e)
	}
	m.metrics.deletions.Set(float64(m.order.Len()))
}

// all returns what is remembered, the latest first, and the number of the latest.
func (m *Deletions) all() ([]*Deletion, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.age()
	out := make([]*Deletion, 0, m.order.Len())
	for e := m.order.Back(); e != nil; e = e.Prev() {
		out = append(out, e.Value.(*Deletion))
	}
	return out, m.number
}

// since returns what was remembered after that number, the latest first, the
// number of the latest, and a channel that is closed at the next one.
func (m *Deletions) since(number uint64) ([]*Deletion, uint64, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*Deletion
	for e := m.order.Back(); e != nil && e.Value.(*Deletion).number > number; e = e.Prev() {
		out = append(out, e.Value.(*Deletion))
	}
	return out, m.number, m.wake
}

// has reports whether a deletion is still the one that is remembered.
func (m *Deletions) has(d *Deletion) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byKey[d.Key]
	return e != nil && e.Value.(*Deletion) == d
}

// age forgets what is older than it has to be.
func (m *Deletions) age() {
	for e := m.order.Front(); e != nil && time.Since(e.Value.(*Deletion).seen) > m.keep; e = m.order.Front() {
		m.remove(e)
		m.metrics.forgotten.WithLabelValues(reasonAged).Inc()
	}
	m.metrics.deletions.Set(float64(m.order.Len()))
}

func (m *Deletions) remove(e *list.Element) {
	delete(m.byKey, e.Value.(*Deletion).Key)
	m.order.Remove(e)
}
