package scheduler

import (
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// assumedFor is how long a pod is taken to be where it was last sent, unless a
// cache shows it somewhere. Binding takes no longer, or has failed.
const assumedFor = 30 * time.Second

const (
	// refusedKept bounds how many refused pods are remembered.
	refusedKept = 8192
	// assumedKept bounds how many pods are that were sent to a node: more than a
	// scheduler places while it takes one to be there.
	assumedKept = 16384
)

// AssumeCache remembers what was answered: where pods of members were sent that no
// cache shows on a node yet, because the scheduler asks for the next one first, and
// which were refused, because it asks about preemption next.
type AssumeCache struct {
	clock   clock.PassiveClock
	refused *lru.Cache

	mu    sync.Mutex
	pools map[string]map[types.UID]sent
	// kept is how many pods there are in pools.
	kept int
	// tidied is when the pools were last looked through that nobody asks about.
	tidied time.Time
}

type sent struct {
	pod  types.NamespacedName
	node string
	at   time.Time
}

// NewAssumeCache returns an empty assume cache.
func NewAssumeCache(c clock.PassiveClock) *AssumeCache {
	return &AssumeCache{clock: c, refused: lru.New(refusedKept), pools: map[string]map[types.UID]sent{}}
}

func (l *AssumeCache) refuse(pod types.UID) { l.refused.Add(pod, true) }

// clearRefusal forgets that a pod was refused, and tells whether it was.
func (l *AssumeCache) clearRefusal(pod types.UID) bool {
	_, was := l.refused.Get(pod)
	l.refused.Remove(pod)
	return was
}

// assume notes that the pod goes to the node, unless too many others do.
func (l *AssumeCache) assume(pool string, pod *corev1.Pod, node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clock.Since(l.tidied) > assumedFor {
		l.tidy()
	}
	l.remove(pool, pod.UID)
	if l.kept >= assumedKept {
		return
	}
	if l.pools[pool] == nil {
		l.pools[pool] = map[types.UID]sent{}
	}
	// The node's name is a part of the whole request's text.
	l.pools[pool][pod.UID] = sent{nameOf(pod), strings.Clone(node), l.clock.Now()}
	l.kept++
}

func (l *AssumeCache) drop(pool string, pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(pool, pod)
}

func (l *AssumeCache) remove(pool string, pod types.UID) {
	if _, ok := l.pools[pool][pod]; ok {
		delete(l.pools[pool], pod)
		l.kept--
	}
	if len(l.pools[pool]) == 0 {
		delete(l.pools, pool)
	}
}

// moved counts, by node, the pool's pods that were sent there, but for that pod
// and for those that a cache shows somewhere: these are forgotten.
func (l *AssumeCache) moved(pool string, but types.UID, shown func(name types.NamespacedName, pod types.UID) bool) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]int{}
	for pod, s := range l.pools[pool] {
		switch {
		case l.clock.Since(s.at) > assumedFor || shown(s.pod, pod):
			l.remove(pool, pod)
		case pod != but:
			out[s.node]++
		}
	}
	return out
}

func (l *AssumeCache) tidy() {
	l.tidied = l.clock.Now()
	for pool, pods := range l.pools {
		for pod, s := range pods {
			if l.clock.Since(s.at) > assumedFor {
				l.remove(pool, pod)
			}
		}
	}
}
