package scheduler

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestScore(t *testing.T) {
	even := Weights{Zone: 2, Node: 2, Image: 1}
	type at struct {
		node, zone string
		images     float64
	}
	cases := map[string]struct {
		nodes   []at
		has     tally
		weights Weights
		// want are the scores in the order of nodes.
		want []int64
	}{
		"the emptier zone": {
			nodes: []at{{"a1", "a", 0}, {"a2", "a", 0}, {"b1", "b", 0}},
			has:   tally{nodes: map[string]int{"a1": 2}, zones: map[string]int{"a": 2}}, weights: even,
			want: []int64{0, 4, 10},
		},
		"the emptier node of a zone": {
			nodes: []at{{"a1", "a", 0}, {"a2", "a", 0}},
			has:   tally{nodes: map[string]int{"a1": 1}, zones: map[string]int{"a": 1}}, weights: even,
			want: []int64{0, 10},
		},
		"images decide between equals": {
			nodes: []at{{"a1", "a", 0}, {"a2", "a", .5}, {"a3", "a", 1}}, weights: even,
			want: []int64{0, 4, 10},
		},
		"images do not outweigh a member": {
			nodes: []at{{"a1", "a", 1}, {"a2", "a", 0}},
			has:   tally{nodes: map[string]int{"a1": 1}, zones: map[string]int{"a": 1}}, weights: even,
			want: []int64{0, 10},
		},
		"images first, if so configured": {
			nodes: []at{{"a1", "a", 1}, {"a2", "a", 0}},
			has:   tally{nodes: map[string]int{"a1": 1}, zones: map[string]int{"a": 1}}, weights: Weights{Node: 1, Image: 2},
			want: []int64{10, 0},
		},
		"zones are off": {
			nodes: []at{{"a1", "a", 0}, {"b1", "b", 0}},
			has:   tally{nodes: map[string]int{"b1": 1}, zones: map[string]int{"a": 5, "b": 1}}, weights: Weights{Node: 1},
			want: []int64{10, 0},
		},
		"one node": {nodes: []at{{"a1", "a", 0}}, weights: even, want: []int64{10}},
		"no node":  {weights: even},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var list extenderv1.HostPriorityList
			var sites []site
			for _, n := range tc.nodes {
				list, sites = append(list, extenderv1.HostPriority{Host: n.node}), append(sites, site{n.zone, n.images})
			}
			best := score(list, sites, tc.has, tc.weights, "uid")
			var got []int64
			for _, s := range list {
				got = append(got, s.Score)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("scores (-want,+got):\n%s", diff)
			}
			if len(list) == 0 && best != -1 || len(list) > 0 && list[best].Score != extenderv1.MaxExtenderPriority {
				t.Errorf("best is %d of %v", best, list)
			}
		})
	}
}

// Among equals exactly one gets the 10, and over many pods each has its turn.
func TestEqualNodesTakeTurns(t *testing.T) {
	turns := map[string]int{}
	for i := range 300 {
		list := extenderv1.HostPriorityList{{Host: "a"}, {Host: "b"}, {Host: "c"}}
		best := score(list, make([]site, 3), tally{}, Weights{Node: 1}, types.UID(fmt.Sprintf("pod-%d", i)))
		turns[list[best].Host]++
		for j, s := range list {
			if j != best && s.Score != othersAtMost {
				t.Fatalf("scores %v, want one 10 and all others %d", list, othersAtMost)
			}
		}
	}
	for _, host := range []string{"a", "b", "c"} {
		if turns[host] < 30 {
			t.Errorf("node %s got %d of 300 pods", host, turns[host])
		}
	}
}

// Placing a pool by the scores alone keeps zones and nodes within one member.
func TestLotsAreFNV(t *testing.T) {
	for _, tc := range [][2]string{{"", ""}, {"uid", "node-1"}, {"5d1f0c0e-8f55-4d3e-9a44-0a4b1b7f5a52", "node-17.region-1.compute.internal"}, {"u", "nö"}} {
		h := fnv.New32a()
		_, _ = h.Write([]byte(tc[0] + tc[1]))
		if got := drawFor(types.UID(tc[0])).draw(tc[1]); got != h.Sum32() {
			t.Errorf("draw(%q, %q) = %d, want %d", tc[0], tc[1], got, h.Sum32())
		}
	}
}

func TestScoresSpreadAPool(t *testing.T) {
	const zones, perZone, members = 3, 4, 24
	has := tally{nodes: map[string]int{}, zones: map[string]int{}}
	for i := range members {
		var list extenderv1.HostPriorityList
		var sites []site
		for n := range zones * perZone {
			list, sites = append(list, extenderv1.HostPriority{Host: fmt.Sprint(n)}), append(sites, site{zone: fmt.Sprint(n % zones)})
		}
		best := score(list, sites, has, Weights{Zone: 2, Node: 2, Image: 1}, types.UID(fmt.Sprint(i)))
		has.nodes[list[best].Host]++
		has.zones[sites[best].zone]++
	}
	for node, n := range has.nodes {
		if n != members/zones/perZone {
			t.Errorf("node %s has %d members", node, n)
		}
	}
	for zone, n := range has.zones {
		if n != members/zones {
			t.Errorf("zone %s has %d members", zone, n)
		}
	}
}

func TestPlaced(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start)
	l := NewAssumeCache(clock)
	for pod, to := range map[string][2]string{"bound": {"pool", "a"}, "sent": {"pool", "b"}, "asks": {"pool", "c"}, "x": {"other", "d"}} {
		l.assume(to[0], podNamed(pod), to[1])
	}
	shows := func(names ...string) func(types.NamespacedName, types.UID) bool {
		return func(name types.NamespacedName, pod types.UID) bool {
			return slices.Contains(names, name.Name) && pod == types.UID("uid-"+name.Name)
		}
	}
	if diff := cmp.Diff(map[string]int{"b": 1}, l.moved("pool", "uid-asks", shows("bound"))); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	l.drop("pool", "uid-asks")
	if diff := cmp.Diff(map[string]int{"b": 1}, l.moved("pool", "", shows())); diff != "" {
		t.Errorf("after the cache showed one and one was dropped (-want,+got):\n%s", diff)
	}
	clock.SetTime(start.Add(assumedFor + time.Second))
	if got := l.moved("pool", "", shows()); len(got) > 0 {
		t.Errorf("%v, want nothing: binding does not take that long", got)
	}
	l.assume("pool", podNamed("next"), "a")
	if _, left := l.pools["other"]; left {
		t.Error("a pool that nobody asks about is still remembered")
	}
	if l.kept != 1 {
		t.Errorf("%d pods counted, want 1", l.kept)
	}
}

// However many pods somebody asks about, so many are remembered.
func TestAssumeCacheIsBounded(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start)
	l := NewAssumeCache(clock)
	for i := range assumedKept + 10 {
		l.assume(fmt.Sprint("pool-", i%7), podNamed(fmt.Sprint(i)), "a")
	}
	n := 0
	for _, pods := range l.pools {
		n += len(pods)
	}
	if n != assumedKept || l.kept != n {
		t.Errorf("%d pods remembered, %d counted, want %d", n, l.kept, assumedKept)
	}
	clock.SetTime(start.Add(assumedFor + time.Second))
	l.assume("pool", podNamed("next"), "a")
	if l.kept != 1 {
		t.Errorf("%d pods remembered when the others are in their places, want 1", l.kept)
	}
}

func TestNodes(t *testing.T) {
	n := NewNodes()
	n.OnAdd(makeNode("n", "a", "docker.io/library/python:3", "python@sha256:1", "quay.io:80/x"), true)
	list := extenderv1.HostPriorityList{{Host: "n"}, {Host: "nobody-knows"}}
	images := []uint64{imageHash("python:3"), imageHash("quay.io:80/x"), imageHash("quay.io:80/x:latest"), imageHash("python")}
	if diff := cmp.Diff([]site{{"a", .75}, {}}, n.sites(list, images), cmp.AllowUnexported(site{})); diff != "" {
		t.Errorf("sites (-want,+got):\n%s", diff)
	}
	n.OnUpdate(nil, tainted(makeNode("n", "b")))
	if !n.isLeaving("n", podNamed("fresh")) || n.sites(list, nil)[0].zone != "b" {
		t.Error("an update was not taken in")
	}
	n.OnUpdate(nil, makeNode("n", "b"))
	if n.isLeaving("n", podNamed("fresh")) {
		t.Error("a node that stays is still refused")
	}
	n.OnUpdate(nil, tainted(makeNode("n", "b")))
	n.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "n", Obj: makeNode("n", "b")})
	if n.isLeaving("n", podNamed("fresh")) || n.sites(list, nil)[0].zone != "" {
		t.Error("a node that is gone is still known")
	}
	n.OnAdd("no node", true)
}
