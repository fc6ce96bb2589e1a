package scheduler

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/platform"
)

// Placed counts the members of each pool by the nodes that they are on, as the
// events of a cache tell, so that no request looks at Pods. Bare Pods are in no
// cache. It keeps some 200 bytes of each member that the cache has.
type Placed struct {
	nodes *Nodes

	mu     sync.Mutex
	places map[types.NamespacedName]place
	// counts are by the UIDs of pools.
	counts map[string]*spread
}

// spread counts one pool's members.
type spread struct {
	nodes, zones map[string]int
	// zoned is what zones are as of.
	zoned int
}

// place is what is known of a Pod's name: the Pod itself and members that have a
// Pod of that name may be seen in either order.
type place struct {
	pod  types.UID
	node string
	// pool is the UID of the pool that so many members with this Pod are of: one,
	// unless somebody says the same of others. More are further pools.
	pool    string
	members int
	more    map[string]int
}

// NewPlaced knows no member.
func NewPlaced(nodes *Nodes) *Placed {
	return &Placed{nodes: nodes, places: map[types.NamespacedName]place{}, counts: map[string]*spread{}}
}

// Member takes in what happened to a pool's idle member: it was one, or is one.
func (p *Placed) Member(old, now *platform.Member) {
	if was, is := membership(old), membership(now); was != is {
		p.leave(was)
		p.enter(is)
	}
}

// Pod takes in what happened to the Pod of one. A Pod that is about to be gone is
// nowhere.
func (p *Placed) Pod(old, now *platform.MemberPod) {
	if now == nil {
		p.change(keyOf(old), func(is *place) { is.pod, is.node = "", "" })
		return
	}
	uid, node := now.UID, now.Node()
	if node == "" || now.Deleting() {
		uid, node = "", ""
	}
	p.change(keyOf(now), func(is *place) { is.pod, is.node = uid, node })
}

// member is one by the name of its Pod; of no pool, when it has no UID of one.
type member struct {
	pod  types.NamespacedName
	pool string
}

func membership(m *platform.Member) member {
	if m == nil || !m.Pooled {
		return member{}
	}
	_, pool := m.Pool()
	return member{types.NamespacedName{Namespace: m.GetNamespace(), Name: m.PodName()}, string(pool)}
}

func (p *Placed) enter(m member) {
	if m.pool == "" {
		return
	}
	p.change(m.pod, func(is *place) {
		switch {
		case is.pool == "":
			is.pool, is.members = m.pool, 1
		case is.pool == m.pool:
			is.members++
		case is.more == nil:
			is.more = map[string]int{m.pool: 1}
		default:
			is.more[m.pool]++
		}
	})
}

func (p *Placed) leave(m member) {
	if m.pool == "" {
		return
	}
	p.change(m.pod, func(is *place) {
		if is.pool != m.pool {
			if is.more[m.pool]--; is.more[m.pool] == 0 {
				delete(is.more, m.pool)
			}
			return
		}
		if is.members--; is.members > 0 {
			return
		}
		is.pool = ""
		for pool, members := range is.more {
			is.pool, is.members = pool, members
			delete(is.more, pool)
			break
		}
	})
}

func keyOf(pod *platform.MemberPod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.Name}
}

// change changes one place, and the counts with it.
func (p *Placed) change(pod types.NamespacedName, do func(*place)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is := p.places[pod]
	p.count(is, -1)
	do(&is)
	p.count(is, 1)
	if is.pool == "" && is.node == "" {
		delete(p.places, pod)
		return
	}
	p.places[pod] = is
}

// count counts a Pod once for each pool that has it.
func (p *Placed) count(is place, by int) {
	if is.node == "" || is.pool == "" {
		return
	}
	p.add(is.pool, is.node, by)
	for pool := range is.more {
		p.add(pool, is.node, by)
	}
}

func (p *Placed) add(pool, node string, by int) {
	is := p.counts[pool]
	if is == nil {
		is = &spread{nodes: map[string]int{}}
		p.counts[pool] = is
	}
	bump(is.nodes, node, by)
	if len(is.nodes) == 0 {
		delete(p.counts, pool)
		return
	}
	zone, zoned := p.nodes.zone(node)
	if is.zones == nil || is.zoned != zoned {
		is.zones = nil
		return
	}
	bump(is.zones, zone, by)
}

func bump(counts map[string]int, key string, by int) {
	if counts[key] += by; counts[key] == 0 {
		delete(counts, key)
	}
}

// shows reports whether the Pod is on a node, and counted for that pool.
func (p *Placed) shows(pool string, name types.NamespacedName, pod types.UID) (string, bool) {
	is := p.places[name]
	if is.node == "" || is.pod != pod || is.pool != pool && is.more[pool] == 0 {
		return "", false
	}
	return is.node, true
}

// with calls f with a pool's members, but for the Pod that asks, and with those
// that were sent to a node and that no cache shows yet. The counts are f's only
// until it returns.
func (p *Placed) with(pool string, asks *corev1.Pod, sent *AssumeCache, f func(tally)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	has := tally{moved: sent.moved(pool, asks.UID, func(name types.NamespacedName, pod types.UID) bool {
		_, shown := p.shows(pool, name, pod)
		return shown
	})}
	if node, shown := p.shows(pool, nameOf(asks), asks.UID); shown {
		has.moved[node]--
	}
	if is := p.counts[pool]; is != nil {
		if _, zoned := p.nodes.zone(""); is.zones == nil || is.zoned != zoned {
			is.zones, is.zoned = p.nodes.byZone(is.nodes)
		}
		has.nodes, has.zones = is.nodes, is.zones
	}
	has.movedZones, _ = p.nodes.byZone(has.moved)
	f(has)
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
