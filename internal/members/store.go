// Package members caches Sandboxes and their Pods, reduced to what is looked at
// outside of admission: some hundred bytes each, so that every replica can hold
// those of a large cluster.
package members

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/platform"
)

// Handler is told what changed: old is nil for what is new, now for what is gone.
// It is called for one change after the other, and must not block.
type Handler[T any] func(old, now *T)

type (
	// Member is what is kept of a Sandbox.
	Member = platform.Member
	// Pod is what is kept of a Sandbox's Pod.
	Pod = platform.MemberPod
)

// WithPod is a Sandbox, and the Pod of which it says that it runs in it; nil when
// none is shown.
type WithPod struct {
	*Member
	Pod *Pod
}

// Store has Sandboxes and their Pods.
type Store struct {
	sandboxes table[Member]
	pods      table[Pod]

	mu sync.RWMutex
	// byPool are the members of pools, the oldest first, inPod those whose Pods have
	// other names than they.
	byPool map[types.UID][]WithPod
	inPod  map[types.NamespacedName][]*Member
	// onNode is how many Pods there are on each node.
	onNode map[string]int
	// nodes counts how often a node got its first Pod, or lost its last one.
	nodes int
}

// NewStore returns an empty Store of what a Reducer makes.
func NewStore(reducer *platform.Reducer) *Store {
	s := &Store{
		byPool: map[types.UID][]WithPod{}, inPod: map[types.NamespacedName][]*Member{}, onNode: map[string]int{},
	}
	s.sandboxes.reduce, s.sandboxes.index = reducer.Member, s.index
	s.pods.reduce, s.pods.index = reducer.Pod, s.indexPod
	return s
}

// FeedSandboxes returns what puts the Sandboxes of a namespace, "" for all, into the
// Store, and calls synced once they were listed.
func (s *Store) FeedSandboxes(namespace string, synced func()) *Feed[Member] {
	return &Feed[Member]{table: &s.sandboxes, namespace: namespace, synced: sync.OnceFunc(synced)}
}

// FeedPods does so for the Pods of Sandboxes.
func (s *Store) FeedPods(namespace string, synced func()) *Feed[Pod] {
	return &Feed[Pod]{table: &s.pods, namespace: namespace, synced: sync.OnceFunc(synced)}
}

// Sandbox returns a Sandbox; nil when none is shown.
func (s *Store) Sandbox(key types.NamespacedName) *Member { return s.sandboxes.get(key) }

// Reduce returns a Sandbox that was read elsewhere as the Store would keep it.
func (s *Store) Reduce(sandbox *unstructured.Unstructured) *Member {
	return s.sandboxes.reduce(sandbox, nil)
}

// Pod returns the Pod of a Sandbox; nil when none is shown.
func (s *Store) Pod(key types.NamespacedName) *Pod { return s.pods.get(key) }

// OfPool returns the members that a pool has, the oldest first.
func (s *Store) OfPool(pool types.UID) []WithPod {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.byPool[pool])
}

// Sandboxes returns those of a namespace, all for "".
func (s *Store) Sandboxes(namespace string) []*Member {
	return s.sandboxes.list(func(m *Member) bool { return namespace == "" || m.GetNamespace() == namespace })
}

// PodsOn returns the Pods that are on a node. It looks at all of them.
func (s *Store) PodsOn(node string) []*Pod {
	return s.pods.list(func(p *Pod) bool { return p.Node() == node })
}

// Nodes returns the nodes with Pods on them, unless nothing has changed since the
// version that is given.
func (s *Store) Nodes(known int) (nodes []string, version int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if known == s.nodes {
		return nil, known
	}
	return slices.Collect(maps.Keys(s.onNode)), s.nodes
}

// HandleSandboxes has a handler told of every Sandbox that is there, and of what
// changes from then on.
func (s *Store) HandleSandboxes(h Handler[Member]) { s.sandboxes.handle(h) }

// HandlePods does so for Pods.
func (s *Store) HandlePods(h Handler[Pod]) { s.pods.handle(h) }

// index notes whose a Sandbox was, and is.
func (s *Store) index(old, now *Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old != nil {
		if _, pool := old.Pool(); pool != "" {
			s.remove(pool, old)
		}
	}
	if now != nil {
		if _, pool := now.Pool(); pool != "" {
			s.insert(pool, now)
		}
	}
}

// podKeyOf is the Pod that a Sandbox says it runs in.
func podKeyOf(m *Member) types.NamespacedName {
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.PodName()}
}

func (s *Store) indexPod(old, now *Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old != nil {
		s.count(old.Node(), -1)
	}
	if now != nil {
		s.count(now.Node(), 1)
	}
	key := keyOf(cmp.Or(now, old))
	if m := s.sandboxes.get(key); m != nil && m.PodName() == m.Name {
		s.runs(m, now)
	}
	for _, m := range s.inPod[key] {
		s.runs(m, now)
	}
}

// runs notes what a member runs in. One that is not there yet, or as another version,
// has that noted when it comes. It has mu held.
func (s *Store) runs(m *Member, in *Pod) {
	_, pool := m.Pool()
	if i, found := slices.BinarySearchFunc(s.byPool[pool], m, byAge); found {
		s.byPool[pool][i].Pod = in
	}
}

// count has mu held.
func (s *Store) count(node string, n int) {
	if node == "" {
		return
	}
	was := s.onNode[node]
	if s.onNode[node] = was + n; was+n == 0 {
		delete(s.onNode, node)
	}
	if was == 0 || was+n == 0 {
		s.nodes++
	}
}

// ByAge orders members, the oldest first.
func ByAge(a, b *Member) int {
	return cmp.Or(a.Created().Compare(b.Created()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

func byAge(a WithPod, b *Member) int { return ByAge(a.Member, b) }

// remove has mu held.
func (s *Store) remove(pool types.UID, m *Member) {
	of := s.byPool[pool]
	if i, found := slices.BinarySearchFunc(of, m, byAge); found {
		s.byPool[pool] = slices.Delete(of, i, i+1)
	}
	if len(s.byPool[pool]) == 0 {
		delete(s.byPool, pool)
	}
	if m.PodName() == m.Name {
		return
	}
	key := podKeyOf(m)
	s.inPod[key] = slices.DeleteFunc(s.inPod[key], func(o *Member) bool { return o == m })
	if len(s.inPod[key]) == 0 {
		delete(s.inPod, key)
	}
}

// insert has mu held.
func (s *Store) insert(pool types.UID, m *Member) {
	of := s.byPool[pool]
	if i, found := slices.BinarySearchFunc(of, m, byAge); !found {
		s.byPool[pool] = slices.Insert(of, i, WithPod{m, s.pods.get(podKeyOf(m))})
	}
	if m.PodName() != m.Name {
		s.inPod[podKeyOf(m)] = append(s.inPod[podKeyOf(m)], m)
	}
}
