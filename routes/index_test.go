package routes

import (
	"fmt"
	"testing"
)

// Many more IDs than shards, so that they collide, come and go.
func TestIndexIsAMap(t *testing.T) {
	x, want := newIndex(hasID), map[string]*route{}
	for n := range 60_000 {
		id := fmt.Sprintf("team--sandbox-%d", n*7919%20_000)
		if n%3 == 2 {
			x.put(id, nil)
			delete(want, id)
			continue
		}
		r := &route{id: id, version: Version(n)}
		x.put(id, r)
		want[id] = r
	}
	for n := range 20_000 {
		id := fmt.Sprintf("team--sandbox-%d", n)
		if got := x.get(id); got != want[id] {
			t.Fatalf("%s is %v, want %v", id, got, want[id])
		}
	}
	n := 0
	x.all(func(r *route) bool {
		if want[r.id] != r {
			t.Errorf("%s is %v, want %v", r.id, r, want[r.id])
		}
		n++
		return true
	})
	if n != len(want) {
		t.Errorf("%d routes, want %d", n, len(want))
	}
	x.clear()
	if x.get("team--sandbox-1") != nil {
		t.Error("something is left")
	}
}
