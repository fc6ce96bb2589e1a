package rollout

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// some is a graph with edges at random.
func some(random *rand.Rand, nodes, edges int) graph {
	g := graph{first: make([]int32, nodes+1)}
	for range edges {
		g.edges = append(g.edges, edge{int32(random.IntN(nodes)), int32(random.IntN(nodes)), random.IntN(4) == 0})
	}
	slices.SortStableFunc(g.edges, func(a, b edge) int { return int(a.from - b.from) })
	for _, e := range g.edges {
		g.first[e.from+1]++
	}
	for i := range nodes {
		g.first[i+1] += g.first[i]
	}
	return g
}

// reach is what can be reached from each node, found the slow way.
func (g *graph) reach() [][]bool {
	n := len(g.first) - 1
	out := make([][]bool, n)
	for i := range out {
		out[i] = make([]bool, n)
		out[i][i] = true
	}
	for _, e := range g.edges {
		out[e.from][e.to] = true
	}
	for k := range n {
		for i := range n {
			for j := range n {
				out[i][j] = out[i][j] || out[i][k] && out[k][j]
			}
		}
	}
	return out
}

func TestComponents(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	loops := 0
	for range 500 {
		g := some(random, 1+random.IntN(12), random.IntN(20))
		reach, parts := g.reach(), g.components()
		writes := false
		for i := range parts {
			for j := range parts {
				if together := reach[i][j] && reach[j][i]; together != (parts[i] == parts[j]) {
					t.Fatalf("%v: %d and %d are of components %v", g.edges, i, j, parts)
				}
			}
		}
		for _, e := range g.edges {
			writes = writes || e.writes && reach[e.to][e.from]
		}
		loop := g.loop()
		if (loop != nil) != writes {
			t.Fatalf("%v: a loop %v, want one: %t", g.edges, loop, writes)
		}
		if loop == nil {
			continue
		}
		loops++
		if loop[0] != loop[len(loop)-1] {
			t.Fatalf("%v: %v does not come back", g.edges, loop)
		}
		for i, at := range loop[1:] {
			if !slices.ContainsFunc(g.from(loop[i]), func(e edge) bool { return e.to == at }) {
				t.Fatalf("%v: no step from %d to %d", g.edges, loop[i], at)
			}
		}
	}
	if loops == 0 {
		t.Error("no graph had a loop")
	}
}

// Two states, the first of which is an end.
func TestWhatLasts(t *testing.T) {
	for name, tc := range map[string]struct {
		edges []edge
		want  Promise
	}{
		"comes back, and writes": {[]edge{{0, 1, true}, {1, 0, false}}, Steady},
		"comes back":             {[]edge{{0, 1, false}, {1, 0, false}}, Kept},
		"writes once":            {[]edge{{1, 0, true}}, Kept},
		"never comes back":       {[]edge{{0, 1, false}}, Ends},
	} {
		t.Run(name, func(t *testing.T) {
			s, paused := newSpace(), initial()
			paused.paused = true
			s.add(node{paused.pack(), 0})
			s.edges = tc.edges
			b := rolling.with("pauses", func(b *Bounds) { b.Pauses = true })
			if got, _ := s.lasting(newExplorer(&Variant{}, &b, shipped)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
