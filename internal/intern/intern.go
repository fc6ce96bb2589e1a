// Package intern keeps equal values once, for as long as somebody uses them.
package intern

import (
	"runtime"
	"sync"
	"weak"
)

// Table keeps values by their keys while they are in use. The zero Table is
// empty.
type Table[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]weak.Pointer[V]
}

// Get returns the value of a key, which it makes when nobody uses one. made
// returns also what to do when nobody does any more, or nil.
func (t *Table[K, V]) Get(key K, made func(K) (value *V, gone func())) *V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if value := t.values[key].Value(); value != nil {
		return value
	}
	value, gone := made(key)
	if t.values == nil {
		t.values = map[K]weak.Pointer[V]{}
	}
	t.values[key] = weak.Make(value)
	runtime.AddCleanup(value, func(key K) { t.forget(key, gone) }, key)
	return value
}

// forget leaves a value alone that took the place of the one that went.
func (t *Table[K, V]) forget(key K, gone func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values[key].Value() == nil {
		delete(t.values, key)
	}
	if gone != nil {
		gone()
	}
}
