package routes

import (
	"hash/maphash"
	"maps"
	"sync/atomic"
)

const shardCount = 4096

// index maps IDs to routes for readers that never wait. A write copies one
// shard, of some dozens of entries.
type index struct {
	seed   maphash.Seed
	shards [shardCount]atomic.Pointer[map[string]*route]
}

func newIndex() *index { return &index{seed: maphash.MakeSeed()} }

func (x *index) shard(id string) *atomic.Pointer[map[string]*route] {
	return &x.shards[maphash.String(x.seed, id)%shardCount]
}

func (x *index) get(id string) *route {
	m := x.shard(id).Load()
	if m == nil {
		return nil
	}
	return (*m)[id]
}

// put is called by one writer at a time; a nil route removes the ID.
func (x *index) put(id string, r *route) {
	shard := x.shard(id)
	old := shard.Load()
	var next map[string]*route
	if old != nil {
		next = maps.Clone(*old)
	} else {
		next = make(map[string]*route, 1)
	}
	if r == nil {
		delete(next, id)
	} else {
		next[id] = r
	}
	shard.Store(&next)
}

func (x *index) clear() {
	for i := range x.shards {
		x.shards[i].Store(nil)
	}
}

// all calls yield for each route until it returns false.
func (x *index) all(yield func(*route) bool) {
	for i := range x.shards {
		m := x.shards[i].Load()
		if m == nil {
			continue
		}
		for _, r := range *m {
			if !yield(r) {
				return
			}
		}
	}
}
