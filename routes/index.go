package routes

import (
	"hash/maphash"
	"sync/atomic"
)

const shardCount = 4096

// index maps IDs to routes for readers that never wait. A write copies one
// shard, of some dozens of entries.
//
// A shard is a table with open addressing and not a map: the hash that has found
// it finds the entry as well, and the ID is compared in the route, which the
// reader needs anyway.
type index struct {
	seed   maphash.Seed
	has    func(r *route, id string) bool
	shards [shardCount]atomic.Pointer[shard]
}

type shard struct {
	used int
	// slots are a power of two in number, and never all taken.
	slots []slot
}

type slot struct {
	hash  uint64
	route *route
}

const minSlots = 4

// newIndex returns an index of what routes have by that function.
func newIndex(has func(*route, string) bool) *index {
	return &index{seed: maphash.MakeSeed(), has: has}
}

func hasID(r *route, id string) bool { return r.id == id }

func hasUID(r *route, uid string) bool { return string(r.uid[:]) == uid }

// find returns where id is, or where it would be.
func (x *index) find(s *shard, hash uint64, id string) int {
	mask := len(s.slots) - 1
	i := int(hash/shardCount) & mask
	for s.slots[i].route != nil && (s.slots[i].hash != hash || !x.has(s.slots[i].route, id)) {
		i = (i + 1) & mask
	}
	return i
}

func (x *index) get(id string) *route {
	hash := maphash.String(x.seed, id)
	s := x.shards[hash%shardCount].Load()
	if s == nil {
		return nil
	}
	return s.slots[x.find(s, hash, id)].route
}

// put is called by one writer at a time; a nil route removes the ID.
func (x *index) put(id string, r *route) {
	hash := maphash.String(x.seed, id)
	place := &x.shards[hash%shardCount]
	old := place.Load()
	if old == nil {
		old = &shard{}
	}
	size := minSlots
	for 8*(old.used+1) > 7*size {
		size *= 2
	}
	next := &shard{slots: make([]slot, size)}
	for _, have := range old.slots {
		if have.route != nil && (have.hash != hash || !x.has(have.route, id)) {
			next.add(have)
		}
	}
	if r != nil {
		next.add(slot{hash, r})
	}
	place.Store(next)
}

// add takes the first free place for what is not there yet.
func (s *shard) add(e slot) {
	mask := len(s.slots) - 1
	i := int(e.hash/shardCount) & mask
	for s.slots[i].route != nil {
		i = (i + 1) & mask
	}
	s.slots[i] = e
	s.used++
}

func (x *index) clear() {
	for i := range x.shards {
		x.shards[i].Store(nil)
	}
}

// all calls yield for each route until it returns false.
func (x *index) all(yield func(*route) bool) {
	for i := range x.shards {
		s := x.shards[i].Load()
		if s == nil {
			continue
		}
		for _, have := range s.slots {
			if have.route != nil && !yield(have.route) {
				return
			}
		}
	}
}
