package routes

import (
	"container/heap"
	"unique"
)

// objectKey names an object of either kind. Many objects share a namespace, which
// is kept once for all.
type objectKey struct {
	namespace unique.Handle[string]
	name      string
}

func keyOf(namespace, name string) objectKey { return objectKey{unique.Make(namespace), name} }

// fence keeps a deleted object deleted.
type fence struct {
	uid     UID
	version Version
	// id is what lookups called it; "" for a Pod.
	id string
}

// ledger remembers what was deleted, of one kind of objects. It holds a bounded
// number of fences, and drops the one of the lowest version first: then the
// floor, which stands for all that were dropped, rises the least.
type ledger struct {
	limit  int
	fences map[objectKey]fence
	order  fenceHeap
	floor  Version
	// newest is the highest version seen: the floor for a deletion whose own
	// version is not known.
	newest Version
	// selected: the objects are selected by labels. One whose labels change is told
	// deleted, and created with the same UID when it has them again.
	selected bool
	// dropped is called for each fence that is dropped, with its key.
	dropped func(objectKey, fence)
}

func newLedger(limit int, dropped func(objectKey, fence)) *ledger {
	return &ledger{limit: limit, fences: make(map[objectKey]fence), dropped: dropped}
}

// judge decides about an event of an object that the table has no record of.
func (l *ledger) judge(key objectKey, uid UID, v Version) Outcome {
	f, ok := l.fences[key]
	back := ok && f.uid == uid && l.selected && v >= f.version
	if ok && !back && (f.uid == uid || v <= f.version) {
		return Fenced
	}
	if back || v <= l.floor {
		return Undecided
	}
	return Applied
}

// contradicts reports whether a list of version v shows an object that was
// deleted before it, which happens only when the cluster was put back to an
// earlier state. With dying, the object is still there though it counts as deleted.
func (l *ledger) contradicts(key objectKey, uid UID, shown, v Version, dying bool) bool {
	f, ok := l.fences[key]
	if !ok || f.version > v {
		return false
	}
	if f.uid == uid && (dying || l.selected) {
		return shown < f.version
	}
	return f.uid == uid || shown <= f.version
}

func (l *ledger) saw(v Version) { l.newest = max(l.newest, v) }

// raise has the floor at v or higher.
func (l *ledger) raise(v Version) {
	l.floor = max(l.floor, v)
	l.saw(v)
}

// put sets the fence, unless there is a newer one.
func (l *ledger) put(key objectKey, f fence) {
	if old, ok := l.fences[key]; ok && old.version > f.version {
		return
	}
	l.saw(f.version)
	l.fences[key] = f
	heap.Push(&l.order, orderedFence{key, f.version})
	for len(l.fences) > l.limit {
		l.dropLowest()
	}
	if len(l.order) > 2*l.limit+16 {
		l.rebuild()
	}
}

func (l *ledger) dropLowest() {
	for len(l.order) > 0 {
		lowest := heap.Pop(&l.order).(orderedFence)
		f, ok := l.fences[lowest.key]
		if !ok || f.version != lowest.version {
			continue
		}
		delete(l.fences, lowest.key)
		l.raise(f.version)
		l.dropped(lowest.key, f)
		return
	}
}

// rebuild forgets the places in the order of fences that were replaced.
func (l *ledger) rebuild() {
	l.order = l.order[:0]
	for key, f := range l.fences {
		l.order = append(l.order, orderedFence{key, f.version})
	}
	heap.Init(&l.order)
}

// lift removes the fence of an object that a newer one of the same name has
// taken the place of.
func (l *ledger) lift(key objectKey) { delete(l.fences, key) }

type orderedFence struct {
	key     objectKey
	version Version
}

type fenceHeap []orderedFence

func (h fenceHeap) Len() int           { return len(h) }
func (h fenceHeap) Less(i, j int) bool { return h[i].version < h[j].version }
func (h fenceHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *fenceHeap) Push(x any)        { *h = append(*h, x.(orderedFence)) }
func (h *fenceHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
