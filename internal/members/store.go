// Package members caches Sandboxes and their Pods, reduced to what is looked at
// outside of admission: some hundred bytes each, so that every replica can hold
// those of a large cluster.
package members

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// Handler is told what changed: old is nil for what is new, now for what is gone.
// It is called for one change after the other, and must not block.
type Handler[T any] func(old, now *T)

type (
	// Member and Pod are what is kept.
	Member = agentsandbox.Member
	Pod    = agentsandbox.MemberPod
)

// Store has Sandboxes and their Pods. The zero Store is empty.
type Store struct {
	reducer agentsandbox.Reducer

	sandboxes table[Member]
	pods      table[Pod]

	mu sync.RWMutex
	// byPool are the members of pools, the oldest first.
	byPool map[types.UID][]*Member
	// special are the Pods of which Special tells, onNode how many there are on
	// each node.
	special map[types.NamespacedName]*Pod
	onNode  map[string]int
	// nodes counts how often a node got its first Pod, or lost its last one.
	nodes int
}

// NewStore returns an empty Store.
func NewStore() *Store {
	s := &Store{byPool: map[types.UID][]*Member{}, special: map[types.NamespacedName]*Pod{}, onNode: map[string]int{}}
	s.sandboxes.reduce, s.sandboxes.index = s.reducer.Sandbox, s.index
	s.pods.reduce, s.pods.index = s.reducer.Pod, s.indexPod
	return s
}

// Sandbox returns a Sandbox; nil when none is shown.
func (s *Store) Sandbox(key types.NamespacedName) *Member { return s.sandboxes.get(key) }

// Pod returns the Pod of a Sandbox; nil when none is shown.
func (s *Store) Pod(key types.NamespacedName) *Pod { return s.pods.get(key) }

// OfPool returns the members that a pool has.
func (s *Store) OfPool(pool types.UID) []*Member {
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

// Special returns the Pod of a Sandbox when it is held back from scheduling, or
// when another scheduler than the cluster's own is to place it; nil otherwise.
func (s *Store) Special(key types.NamespacedName) *Pod {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.special[key]
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
			remove(s.byPool, pool, old)
		}
	}
	if now != nil {
		if _, pool := now.Pool(); pool != "" {
			insert(s.byPool, pool, now)
		}
	}
}

func (s *Store) indexPod(old, now *Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old != nil {
		delete(s.special, keyOf(old))
		s.count(old.Node(), -1)
	}
	if now != nil {
		if scheduler := now.Scheduler(); now.Gated() || scheduler != "" && scheduler != corev1.DefaultSchedulerName {
			s.special[keyOf(now)] = now
		}
		s.count(now.Node(), 1)
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

// byAge orders members, the oldest first.
func byAge(a, b *Member) int {
	return cmp.Or(a.Created().Compare(b.Created()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

func remove(in map[types.UID][]*Member, key types.UID, m *Member) {
	if i, found := slices.BinarySearchFunc(in[key], m, byAge); found {
		in[key] = slices.Delete(in[key], i, i+1)
	}
	if len(in[key]) == 0 {
		delete(in, key)
	}
}

func insert(in map[types.UID][]*Member, key types.UID, m *Member) {
	if i, found := slices.BinarySearchFunc(in[key], m, byAge); !found {
		in[key] = slices.Insert(in[key], i, m)
	}
}
