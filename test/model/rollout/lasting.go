package rollout

// What may last for ever is found in the graph of fair steps: those that happen sooner or
// later once people and claims leave the pool alone.

// lasting is what is wrong with histories that go on for ever.
func (s *space) lasting(e *explorer) (Promise, Story) {
	out := graph{first: make([]int32, len(s.nodes)+1), edges: s.edges}
	for _, e := range s.edges {
		out.first[e.from+1]++
	}
	for i := range s.nodes {
		out.first[i+1] += out.first[i]
	}
	if at := s.stuck(); at >= 0 {
		return Ends, e.narrate(s.path(at), nil)
	}
	if loop := out.loop(); loop != nil {
		path := s.path(loop[0])
		for _, at := range loop[1:] {
			path = append(path, s.nodes[at].key)
		}
		story := e.narrate(path, nil)
		story.Breaks, story.Again = Steady, len(loop)-1
		return Steady, story
	}
	return Kept, Story{}
}

// graph has the edges from each state in a row.
type graph struct {
	first []int32
	edges []edge
}

func (g *graph) from(at int32) []edge { return g.edges[g.first[at]:g.first[at+1]] }

// stuck is the first state from which no fair history leads to an end, or -1. Where there
// is none, every history ends in which whatever can happen again and again does happen.
func (s *space) stuck() int32 {
	first := make([]int32, len(s.nodes)+2)
	for _, e := range s.edges {
		first[e.to+2]++
	}
	for i := range s.nodes {
		first[i+2] += first[i+1]
	}
	sources := make([]int32, len(s.edges))
	for _, e := range s.edges {
		sources[first[e.to+1]] = e.from
		first[e.to+1]++
	}
	ends := make([]bool, len(s.nodes))
	var next []int32
	reach := func(at int32) {
		if !ends[at] {
			ends[at] = true
			next = append(next, at)
		}
	}
	for i := range s.nodes {
		if is := s.nodes[i].key.unpack(); is.ended() {
			reach(int32(i))
		}
	}
	for len(next) > 0 {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		for _, from := range sources[first[at]:first[at+1]] {
			reach(from)
		}
	}
	for i, is := range ends {
		if !is {
			return int32(i)
		}
	}
	return -1
}

// loop is a history that comes back to where it began and in which Freshbind writes to
// members, or nil: from a state, and back to it.
func (g *graph) loop() []int32 {
	parts := g.components()
	for _, e := range g.edges {
		if e.writes && parts[e.from] == parts[e.to] {
			return append([]int32{e.from}, g.way(parts, e.to, e.from)...)
		}
	}
	return nil
}

// way is a shortest way between two states of one component.
func (g *graph) way(parts []int32, from, to int32) []int32 {
	by := map[int32]int32{from: -1}
	queue := []int32{from}
	for len(queue) > 0 && queue[0] != to {
		at := queue[0]
		queue = queue[1:]
		for _, e := range g.from(at) {
			if _, seen := by[e.to]; !seen && parts[e.to] == parts[from] {
				by[e.to] = at
				queue = append(queue, e.to)
			}
		}
	}
	var out []int32
	for at := to; at >= 0; at = by[at] {
		out = append([]int32{at}, out...)
	}
	return out
}

// components are the strongly connected ones, by Tarjan, without recursion: for each state
// the number of its component.
func (g *graph) components() []int32 {
	n := len(g.first) - 1
	t := tarjan{graph: g, low: make([]int32, n), part: make([]int32, n), next: make([]int32, n)}
	for at := range int32(n) {
		if t.low[at] == 0 {
			t.visit(at)
		}
	}
	return t.part
}

type tarjan struct {
	*graph
	// low is 1 plus the earliest state that is reached, in the order of visits; 0 for one
	// that was not visited. part is 1 plus the component, 0 for none yet, next the edge
	// to follow.
	low, part, next []int32
	stack, calls    []int32
	visits, parts   int32
}

func (t *tarjan) enter(at int32) {
	t.visits++
	t.low[at], t.next[at] = t.visits, t.first[at]
	t.stack, t.calls = append(t.stack, at), append(t.calls, at)
}

func (t *tarjan) visit(root int32) {
	t.enter(root)
	// order is when those on the way were visited.
	order := []int32{t.visits}
	for len(t.calls) > 0 {
		at := t.calls[len(t.calls)-1]
		if t.next[at] < t.first[at+1] {
			to := t.edges[t.next[at]].to
			t.next[at]++
			switch {
			case t.low[to] == 0:
				t.enter(to)
				order = append(order, t.visits)
			case t.part[to] == 0:
				t.low[at] = min(t.low[at], t.low[to])
			}
			continue
		}
		visited := order[len(order)-1]
		t.calls, order = t.calls[:len(t.calls)-1], order[:len(order)-1]
		if len(t.calls) > 0 {
			above := t.calls[len(t.calls)-1]
			t.low[above] = min(t.low[above], t.low[at])
		}
		if t.low[at] == visited {
			t.close(at)
		}
	}
}

// close takes a component off the stack.
func (t *tarjan) close(root int32) {
	t.parts++
	for {
		at := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.part[at] = t.parts
		if at == root {
			return
		}
	}
}
