package auditlog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/freshbind/freshbind/internal/checker"
)

// maxLost bounds the writes without a result that are kept by object. Of what is beyond, it is known only of which kind they
// were, and between which moments.
const maxLost = 100_000

// lostWrites are writes of which the log does not hold the result. They are sorted when they are asked for.
type lostWrites struct {
	byObject map[objectName][]span
	n        int
	sorted   bool
	rest     map[*checker.Kind]span
}

type objectName struct {
	kind            *checker.Kind
	namespace, name string
}

// span is from when a request was received until it was done.
type span struct{ received, done int64 }

func (l *lostWrites) add(e *event) {
	at := span{e.received.UnixMicro(), e.done.UnixMicro()}
	if l.byObject == nil {
		l.byObject, l.rest = map[objectName][]span{}, map[*checker.Kind]span{}
	}
	if l.n == maxLost {
		if all, ok := l.rest[e.kind]; ok {
			at = span{min(all.received, at.received), max(all.done, at.done)}
		}
		l.rest[e.kind] = at
		return
	}
	l.n++
	l.sorted = false
	key := objectName{e.kind, e.namespace, e.name}
	if _, known := l.byObject[key]; !known {
		key.namespace, key.name = strings.Clone(key.namespace), strings.Clone(key.name)
	}
	l.byObject[key] = append(l.byObject[key], at)
}

// between reports whether one of an object may lie between two moments.
func (l *lostWrites) between(o *object, from, until int64) bool {
	if rest, ok := l.rest[o.kind]; ok && rest.received <= until && rest.done >= from {
		return true
	}
	l.sort()
	of := l.byObject[objectName{o.kind, o.namespace, o.name}]
	i, _ := slices.BinarySearchFunc(of, until, func(s span, until int64) int {
		if s.received <= until {
			return -1
		}
		return 1
	})
	return i > 0 && of[i-1].done >= from
}

// sort has each span last as long as any that began before it.
func (l *lostWrites) sort() {
	if l.sorted {
		return
	}
	l.sorted = true
	for _, of := range l.byObject {
		slices.SortFunc(of, func(a, b span) int { return cmp.Compare(a.received, b.received) })
		for i := range of[1:] {
			of[i+1].done = max(of[i+1].done, of[i].done)
		}
	}
}
