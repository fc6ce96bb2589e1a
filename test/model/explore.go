package model

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/freshbind/freshbind/internal/freshness"
)

// Bounds are how large the cluster is.
type Bounds struct {
	// Members and Claims count objects, Flights the writes between admission and store.
	Members, Claims, Flights int
	// Quiet: nobody interferes.
	Quiet bool
}

// Whole is the largest cluster. Small is one in which every story is told, and Tiny
// one that is gone through in no time.
var (
	Whole = Bounds{Members: maxMembers, Claims: maxClaims, Flights: maxFlights}
	Small = Bounds{Members: 2, Claims: maxClaims, Flights: maxFlights}
	Tiny  = Bounds{Members: 2, Claims: maxClaims, Flights: 1}
)

func (b Bounds) check() error {
	if b.Members < 1 || b.Members > maxMembers || b.Claims < 1 || b.Claims > maxClaims || b.Flights < 1 || b.Flights > maxFlights {
		return fmt.Errorf("bounds %+v: use 1 to %d members, 1 to %d claims, 1 to %d writes in flight", b, maxMembers, maxClaims, maxFlights)
	}
	return nil
}

// Result is what there was to be seen.
type Result struct {
	States, Transitions, Depth int
	Elapsed                    time.Duration
	// Broken is the promise that Story, a shortest one, breaks; Kept for none.
	Broken Promise
	Story  Story
	// Reasons are those that the guard has denied writes for.
	Reasons map[freshness.Reason]bool
}

// node is a state that was reached, from the one whose index is parent.
type node struct {
	key    key
	parent int32
}

// explorer finds what follows from states. Of several each has some.
type explorer struct {
	variant *Variant
	bounds  Bounds
	answers map[question]answer
	reasons map[freshness.Reason]bool
	// at is the index of the state whose successors are being emitted to visit.
	at    int32
	visit func(Step, state)
	// transitions counts them, and fresh are those to states that were not seen before.
	transitions int
	fresh       []node
	// found is the first broken promise; one that leaves something undecided only until
	// there is another.
	found *finding
}

type finding struct {
	promise Promise
	at      int32
	step    Step
}

// space is all states that were reached, breadth first, so that the first history that
// breaks a promise is a shortest one.
type space struct {
	nodes []node
	seen  map[key]struct{}
}

func (s *space) add(n node) {
	if _, ok := s.seen[n.key]; !ok {
		s.seen[n.key] = struct{}{}
		s.nodes = append(s.nodes, n)
	}
}

// Explore goes through all states, or as far as the first that breaks a promise.
func (v *Variant) Explore(b Bounds) (Result, error) {
	if err := b.check(); err != nil {
		return Result{}, err
	}
	start := time.Now()
	all := &space{seen: map[key]struct{}{}}
	first := initial(b)
	all.add(node{first.canonical(), -1})
	workers := make([]*explorer, runtime.GOMAXPROCS(0))
	for i := range workers {
		workers[i] = v.explorer(b)
	}
	out := Result{Reasons: map[freshness.Reason]bool{}}
	var found *finding
	for from := 0; from < len(all.nodes) && (found == nil || found.promise == Decided); out.Depth++ {
		to := len(all.nodes)
		all.expand(workers, from, to)
		for _, w := range workers {
			if w.found != nil && (found == nil || found.promise == Decided && w.found.promise != Decided) {
				found = w.found
			}
			for _, n := range w.fresh {
				all.add(n)
			}
		}
		from = to
	}
	out.States, out.Depth = len(all.nodes), out.Depth-1
	for _, w := range workers {
		out.Transitions += w.transitions
		maps.Copy(out.Reasons, w.reasons)
	}
	if found != nil {
		out.Broken, out.Story = found.promise, v.narrate(b, all.path(found.at), *found)
	}
	out.Elapsed = time.Since(start)
	return out, nil
}

// expand shares out the states of one depth. Nothing is added meanwhile.
func (s *space) expand(workers []*explorer, from, to int) {
	var wait sync.WaitGroup
	each := (to - from + len(workers) - 1) / len(workers)
	for i, w := range workers {
		w.fresh, w.found = w.fresh[:0], nil
		w.visit = func(_ Step, next state) {
			w.transitions++
			next.tidy()
			k := next.canonical()
			if _, ok := s.seen[k]; !ok {
				w.fresh = append(w.fresh, node{k, w.at})
			}
		}
		wait.Go(func() {
			for at := from + i*each; at < min(to, from+(i+1)*each); at++ {
				w.at = int32(at)
				state := s.nodes[at].key.unpack()
				w.successors(&state)
			}
		})
	}
	wait.Wait()
}

func (v *Variant) explorer(b Bounds) *explorer {
	return &explorer{variant: v, bounds: b, answers: map[question]answer{}, reasons: map[freshness.Reason]bool{}}
}

// initial is a pool full of members of the first revision, and claims that nobody has
// looked at yet.
func initial(b Bounds) state {
	var s state
	for i := range b.Members {
		s.members[i].there = true
	}
	return s
}

// tidy forgets what makes no difference any more.
func (s *state) tidy() {
	if s.flights[0].write == noWrite {
		s.flights[0], s.flights[1] = s.flights[1], s.flights[0]
	}
	for c := range uint8(maxClaims) {
		if s.claims[c].names == namesGone && !s.held(c) && !s.inFlight(c) {
			s.claims[c].names = namesNone
		}
	}
}

// emit leaves out what this person does not do.
func (e *explorer) emit(step Step, next state) {
	if only := e.variant.Person; only != Nothing && step.Interference != Nothing && step.Interference != only {
		return
	}
	e.visit(step, next)
}

// breaks takes note of the first step that breaks a promise; of those that only leave
// something undecided, only where there is no other.
func (e *explorer) breaks(p Promise, step Step) {
	if e.found == nil || e.found.promise == Decided && p != Decided {
		e.found = &finding{promise: p, at: e.at, step: step}
	}
}

// path is how a state was reached.
func (s *space) path(at int32) []key {
	var keys []key
	for ; at >= 0; at = s.nodes[at].parent {
		keys = append(keys, s.nodes[at].key)
	}
	slices.Reverse(keys)
	return keys
}
