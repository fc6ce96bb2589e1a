// Package bounded has a cache whose bound is in bytes: what tenants write decides how large an entry is.
package bounded

import (
	"container/list"
	"sync"
)

// entryOverhead is about what the cache itself needs for an entry.
const entryOverhead = 200

// Cache keeps what was used last, up to a number of bytes. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	limit int

	mu      sync.Mutex
	bytes   int
	entries map[K]*list.Element
	order   *list.List // the one used last in front
}

type entry[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

// NewCache returns an empty cache of at most limit bytes.
func NewCache[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, entries: map[K]*list.Element{}, order: list.New()}
}

// Get returns the value that was added last under the key.
func (c *Cache[K, V]) Get(key K) (value V, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, found := c.entries[key]
	if !found {
		return value, false
	}
	c.order.MoveToFront(at)
	return at.Value.(*entry[K, V]).value, true
}

// Add keeps a value of so many bytes, its key included, and drops what was not used for longest to make room. What is larger than a
// quarter of the cache is not kept: it would cost all others their place.
func (c *Cache[K, V]) Add(key K, value V, bytes int) {
	bytes += entryOverhead
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.entries[key])
	if bytes > c.limit/4 {
		return
	}
	for c.bytes+bytes > c.limit {
		c.remove(c.order.Back())
	}
	c.entries[key] = c.order.PushFront(&entry[K, V]{key, value, bytes})
	c.bytes += bytes
}

// Remove drops the value of the key.
func (c *Cache[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.entries[key])
}

func (c *Cache[K, V]) remove(at *list.Element) {
	if at == nil {
		return
	}
	e := c.order.Remove(at).(*entry[K, V])
	delete(c.entries, e.key)
	c.bytes -= e.bytes
}

// Bytes is what all entries need, by what Add was told.
func (c *Cache[K, V]) Bytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// Len is the number of entries.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}
