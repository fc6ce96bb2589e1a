package scheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/freshbind/freshbind/test/builders"
)

// makeMember makes a member of the pool of that UID; a name of its Pod other than
// its own is said by annotation.
func makeMember(pool, name, pod string) *unstructured.Unstructured {
	b := builders.MakeMember(builders.MakePool("ns", pool).UID(pool).Obj(), builders.MakeTemplate("ns", "t").Obj()).Name(name)
	if pod != "" {
		b.Annotation("agents.x-k8s.io/pod-name", pod)
	}
	return b.Obj()
}

func makePlaced(name string, uid types.UID, node string) *unstructured.Unstructured {
	u := object(podKind)
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetUID(uid)
	if node != "" {
		on(node, u)
	}
	return u
}

// cached are members and Pods as a cache shows them, by name.
type cached struct {
	members, pods map[string]*unstructured.Unstructured
}

// nodes are those of a pool's members, by the UIDs of their Pods: a look at all.
func (c cached) nodes(pool string) map[types.UID]string {
	out := map[types.UID]string{}
	for _, m := range c.members {
		is := membership(reducer.Member(m, nil))
		pod := c.pods[is.pod.Name]
		if is.pool != pool || pod == nil || pod.GetDeletionTimestamp() != nil {
			continue
		}
		if node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); node != "" {
			out[pod.GetUID()] = node
		}
	}
	return out
}

// counts merges what is placed with what was sent, one by one.
func counts(placed, sent map[types.UID]string, but types.UID, zones map[string]string) map[string]int {
	all := maps.Clone(placed)
	for pod, node := range sent {
		if _, shown := placed[pod]; !shown {
			all[pod] = node
		}
	}
	delete(all, but)
	out := map[string]int{}
	for _, node := range all {
		out[node]++
		out["zone "+zones[node]]++
	}
	return out
}

// counted returns the counts by node and, with "zone " before them, by zone.
func (p *Placed) counted(pool string, asks string, uid types.UID, sent *AssumeCache) map[string]int {
	pod := podNamed(asks)
	pod.UID = uid
	out := map[string]int{}
	p.with(pool, pod, sent, func(has tally) {
		for _, counts := range []map[string]int{has.nodes, has.moved} {
			for node, n := range counts {
				out[node] += n
			}
		}
		for _, counts := range []map[string]int{has.zones, has.movedZones} {
			for zone, n := range counts {
				out["zone "+zone] += n
			}
		}
	})
	maps.DeleteFunc(out, func(_ string, n int) bool { return n == 0 })
	return out
}

// Whatever happens in whatever order, the index says what a look at everything
// does.
func TestPlacedAgreesWithALookAtEverything(t *testing.T) {
	pools := []string{"p", "q", ""}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		pick := func(list []string) string { return list[random.IntN(len(list))] }
		names := []string{"a", "b", "c", "d"}
		c := cached{map[string]*unstructured.Unstructured{}, map[string]*unstructured.Unstructured{}}
		nodes, zones := NewNodes(), map[string]string{}
		p, sent, assumed := NewPlaced(nodes), NewAssumeCache(clocktesting.NewFakePassiveClock(start)), map[types.UID]string{}
		apply := func(of map[string]*unstructured.Unstructured, to toolscache.ResourceEventHandler, name string, next *unstructured.Unstructured) {
			was := of[name]
			switch {
			case next == nil && was == nil:
			case next == nil && random.IntN(2) == 0:
				to.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "ns/" + name, Obj: was})
			case next == nil:
				to.OnDelete(was)
			case was == nil:
				to.OnAdd(next, false)
			default:
				to.OnUpdate(was, next)
			}
			if of[name] = next; next == nil {
				delete(of, name)
			}
		}
		for step := range 400 {
			name := pick(names)
			switch random.IntN(5) {
			case 0:
				apply(c.members, p.Members(), name, nil)
			case 1, 2:
				next := makeMember(pick(pools), name, pick([]string{"", "", "a", "b"}))
				if owner := next.GetOwnerReferences(); owner[0].UID == "" {
					next.SetOwnerReferences(nil)
				}
				apply(c.members, p.Members(), name, next)
			case 3:
				apply(c.pods, p.Pods(), name, nil)
			default:
				next := makePlaced(name, types.UID(fmt.Sprintf("uid-%s-%d", name, random.IntN(2))), pick([]string{"", "n1", "n2"}))
				if random.IntN(8) == 0 {
					next.SetDeletionTimestamp(&metav1.Time{Time: start})
				}
				apply(c.pods, p.Pods(), name, next)
			}
			if random.IntN(3) == 0 {
				pod := podNamed(pick(names))
				pod.UID = types.UID(fmt.Sprintf("uid-%s-%d", pod.Name, random.IntN(2)))
				node := pick([]string{"n1", "n3"})
				sent.assume("p", pod, node)
				assumed[pod.UID] = node
			}
			if node := pick([]string{"n1", "n2", "n3"}); random.IntN(10) == 0 {
				zones[node] = pick([]string{"", "z1", "z2"})
				nodes.OnAdd(makeNode(node, zones[node]), false)
			} else if random.IntN(20) == 0 {
				nodes.OnDelete(makeNode(node, zones[node]))
				delete(zones, node)
			}
			placed := c.nodes("p")
			asks := pick(names)
			uid := types.UID("uid-" + asks + "-0")
			want := counts(placed, assumed, uid, zones)
			if diff := cmp.Diff(want, p.counted("p", asks, uid, sent)); diff != "" {
				t.Fatalf("seed %d, step %d (-want,+got):\n%s", seed, step, diff)
			}
			maps.DeleteFunc(assumed, func(pod types.UID, _ string) bool { _, shown := placed[pod]; return shown })
		}
		for name := range maps.Clone(c.members) {
			apply(c.members, p.Members(), name, nil)
		}
		for name := range maps.Clone(c.pods) {
			apply(c.pods, p.Pods(), name, nil)
		}
		if len(p.places)+len(p.counts) > 0 {
			t.Fatalf("seed %d: %d places and %d pools remembered of nothing", seed, len(p.places), len(p.counts))
		}
	}
}

// Members that say that they have another's Pod cost no more than others.
func TestMembersThatNameOnePod(t *testing.T) {
	p := NewPlaced(NewNodes())
	p.Pods().OnAdd(makePlaced("victim", "uid-victim", "n1"), true)
	for i := range 3 {
		p.Members().OnAdd(makeMember("p", fmt.Sprint("p", i), "victim"), true)
		p.Members().OnAdd(makeMember("q", fmt.Sprint("q", i), "victim"), true)
	}
	is := p.places[types.NamespacedName{Namespace: "ns", Name: "victim"}]
	if is.members != 3 || is.more["q"] != 3 || len(is.more) != 1 {
		t.Errorf("remembered %+v, want a count for each pool", is)
	}
	if pools := slices.Sorted(maps.Keys(p.counts)); !slices.Equal(pools, []string{"p", "q"}) || p.counts["p"].nodes["n1"] != 1 || p.counts["q"].nodes["n1"] != 1 {
		t.Errorf("counts %v, want the Pod once in each pool", p.counts)
	}
}
