package scheduler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// assumedFor is how long a pod is taken to be where it was last sent, unless a
// cache shows it somewhere. Binding takes no longer, or has failed.
const assumedFor = 30 * time.Second

// refusedKept bounds how many refused pods are remembered.
const refusedKept = 8192

// Ledger remembers what was answered: where pods of members were sent that no
// cache shows on a node yet, because the scheduler asks for the next one first, and
// which were refused, because it asks about preemption next.
type Ledger struct {
	clock   clock.PassiveClock
	refused *lru.Cache

	mu    sync.Mutex
	pools map[string]map[types.UID]sent
	// tidied is when the pools were last looked through that nobody asks about.
	tidied time.Time
}

type sent struct {
	node string
	at   time.Time
}

// NewLedger returns an empty ledger.
func NewLedger(c clock.PassiveClock) *Ledger {
	return &Ledger{clock: c, refused: lru.New(refusedKept), pools: map[string]map[types.UID]sent{}}
}

func (l *Ledger) refuse(pod types.UID) { l.refused.Add(pod, true) }

// forgive forgets that a pod was refused, and tells whether it was.
func (l *Ledger) forgive(pod types.UID) bool {
	_, was := l.refused.Get(pod)
	l.refused.Remove(pod)
	return was
}

func (l *Ledger) assume(pool string, pod types.UID, node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clock.Since(l.tidied) > assumedFor {
		l.tidy()
	}
	if l.pools[pool] == nil {
		l.pools[pool] = map[types.UID]sent{}
	}
	l.pools[pool][pod] = sent{node, l.clock.Now()}
}

func (l *Ledger) drop(pool string, pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(pool, pod)
}

func (l *Ledger) remove(pool string, pod types.UID) {
	delete(l.pools[pool], pod)
	if len(l.pools[pool]) == 0 {
		delete(l.pools, pool)
	}
}

// merge returns where the pool's pods are or were sent, but for that pod. What a
// cache shows wins.
func (l *Ledger) merge(pool string, but types.UID, placed map[types.UID]string) map[types.UID]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[types.UID]string, len(placed))
	for pod, node := range placed {
		out[pod] = node
	}
	for pod, s := range l.pools[pool] {
		_, shown := placed[pod]
		if shown || l.clock.Since(s.at) > assumedFor {
			l.remove(pool, pod)
			continue
		}
		out[pod] = s.node
	}
	delete(out, but)
	return out
}

func (l *Ledger) tidy() {
	l.tidied = l.clock.Now()
	for pool, pods := range l.pools {
		for pod, s := range pods {
			if l.clock.Since(s.at) > assumedFor {
				l.remove(pool, pod)
			}
		}
	}
}
