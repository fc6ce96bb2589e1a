package rollout

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/freshbind/freshbind/internal/freshness"
)

// Bounds are a pool, and what happens to it.
type Bounds struct {
	// Name says what happens, in a few words.
	Name     string
	Strategy freshness.Strategy
	// MaxUnavailable is the pool's, Budget that of all pools.
	MaxUnavailable, Budget int
	// Edits is how often the template changes, Late how many changes by others a cache has
	// not shown.
	Edits, Late int
	// Broken: the template's second revision may be one whose members never get ready, and
	// there is a progress deadline.
	Claims, Failures, LateBirths, Pauses, Leaders, Others, Broken bool
}

// Result is what there was to be seen.
type Result struct {
	States, Transitions, Depth int
	// Whole: there are no other states.
	Whole   bool
	Elapsed time.Duration
	// Broken is the promise that Story, a shortest one, breaks; Kept for none.
	Broken Promise
	Story  Story
}

// String is the result in one line.
func (r Result) String() string {
	return fmt.Sprintf("%d states, %d transitions, up to %d steps deep, in %.1f s: %s", r.States, r.Transitions, r.Depth, r.Elapsed.Seconds(), r.Broken)
}

// node is a state that was reached, from the one whose index is parent.
type node struct {
	key    key
	parent int32
}

// edge is a fair step between two states.
type edge struct {
	from, to int32
	writes   bool
}

// arrival is a state that was not seen before its depth, and the edge that leads there;
// -1 for none.
type arrival struct {
	node
	edge int
}

// explorer finds what follows from states. Of several each has some.
type explorer struct {
	variant *Variant
	bounds  *Bounds
	planner *planner

	transitions int
	arrivals    []arrival
	edges       []edge
	// found is the first broken promise.
	found *finding
}

type finding struct {
	promise Promise
	at      int32
	step    step
}

func newExplorer(v *Variant, b *Bounds, share Share) *explorer {
	return &explorer{variant: v, bounds: b, planner: newPlanner(b, share)}
}

// space is all states that were reached, breadth first, so that the first history that
// breaks a promise is a shortest one.
type space struct {
	nodes []node
	index index
	edges []edge
}

func newSpace() *space {
	s := &space{index: index{slots: make([]int32, 1<<16)}}
	first := initial()
	s.add(node{first.pack(), -1})
	return s
}

func (s *space) add(n node) int32 {
	if at := s.index.find(s.nodes, n.key); at >= 0 {
		return at
	}
	s.nodes = append(s.nodes, n)
	s.index.add(s.nodes)
	return int32(len(s.nodes) - 1)
}

// index finds states by their keys: 1 plus where each is, 0 for none.
type index struct{ slots []int32 }

func (k key) hash() uint64 {
	h := k[0]*0x9e3779b97f4a7c15 ^ k[1]*0xbf58476d1ce4e5b9 ^ k[2]*0x94d049bb133111eb
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>29
}

func (x *index) find(nodes []node, k key) int32 {
	mask := uint64(len(x.slots) - 1)
	for i := k.hash() & mask; ; i = (i + 1) & mask {
		switch at := x.slots[i]; {
		case at == 0:
			return -1
		case nodes[at-1].key == k:
			return at - 1
		}
	}
}

// add adds the last of the nodes, and makes room for more.
func (x *index) add(nodes []node) {
	if 2*len(nodes) > len(x.slots) {
		x.slots = make([]int32, 4*len(x.slots))
		for i := range nodes {
			x.put(nodes, i)
		}
		return
	}
	x.put(nodes, len(nodes)-1)
}

func (x *index) put(nodes []node, at int) {
	mask := uint64(len(x.slots) - 1)
	i := nodes[at].key.hash() & mask
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = int32(at + 1)
}

// Explore goes through all states, or as far as the first step that breaks a promise, or
// through so many; 0 for all. Whether the rollout ends it finds out once it has been
// through all.
func (v *Variant) Explore(b Bounds, share Share, most int) Result {
	start := time.Now()
	all := newSpace()
	workers := make([]*explorer, runtime.GOMAXPROCS(0))
	for i := range workers {
		workers[i] = newExplorer(v, &b, share)
	}
	var out Result
	var found *finding
	from := 0
	for ; from < len(all.nodes) && found == nil && (most == 0 || len(all.nodes) < most); out.Depth++ {
		to := len(all.nodes)
		all.expand(workers, from, to)
		found = all.merge(workers)
		from = to
	}
	out.Whole = from == len(all.nodes) && found == nil
	for _, w := range workers {
		out.Transitions += w.transitions
	}
	out.States, out.Depth = len(all.nodes), out.Depth-1
	switch {
	case found != nil:
		out.Broken, out.Story = found.promise, workers[0].narrate(all.path(found.at), found)
	case out.Whole:
		out.Broken, out.Story = all.lasting(workers[0])
	}
	out.Elapsed = time.Since(start)
	return out
}

// expand shares out the states of one depth. Nothing is added meanwhile.
func (s *space) expand(workers []*explorer, from, to int) {
	var wait sync.WaitGroup
	each := (to - from + len(workers) - 1) / len(workers)
	for i, w := range workers {
		w.arrivals, w.edges = w.arrivals[:0], w.edges[:0]
		wait.Go(func() {
			for at := from + i*each; at < min(to, from+(i+1)*each); at++ {
				w.expand(s, int32(at))
			}
		})
	}
	wait.Wait()
}

func (e *explorer) expand(all *space, at int32) {
	from := all.nodes[at].key.unpack()
	e.successors(&from, func(of step, next *state, broken Promise, writes bool) {
		e.transitions++
		if broken != Kept {
			if e.found == nil {
				e.found = &finding{promise: broken, at: at, step: of}
			}
			return
		}
		next.tidy(e.bounds)
		k := next.pack()
		to := all.index.find(all.nodes, k)
		fair := -1
		if to != at && from.fair(of.act, e.bounds) {
			fair = len(e.edges)
			e.edges = append(e.edges, edge{at, to, writes})
		}
		if to < 0 {
			e.arrivals = append(e.arrivals, arrival{node{k, at}, fair})
		}
	})
}

// merge adds what workers have found, in the order of states.
func (s *space) merge(workers []*explorer) *finding {
	var found *finding
	for _, w := range workers {
		if found == nil {
			found = w.found
		}
		for _, a := range w.arrivals {
			to := s.add(a.node)
			if a.edge >= 0 {
				w.edges[a.edge].to = to
			}
		}
		s.edges = append(s.edges, w.edges...)
	}
	return found
}

// path is how a state was reached.
func (s *space) path(at int32) []key {
	n := 0
	for i := at; i >= 0; i = s.nodes[i].parent {
		n++
	}
	keys := make([]key, n)
	for ; at >= 0; at = s.nodes[at].parent {
		n--
		keys[n] = s.nodes[at].key
	}
	return keys
}
