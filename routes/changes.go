package routes

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// changesKept bounds how far back a client can resume.
const changesKept = 16_384

// Cursor is a place in the changes of one session.
type Cursor struct {
	epoch string
	seq   uint64
}

func (c Cursor) String() string { return c.epoch + "." + strconv.FormatUint(c.seq, 10) }

// ErrCursor is returned for text that no cursor has.
var ErrCursor = errors.New("not a cursor")

// ParseCursor parses what Cursor.String returned; "" is the zero Cursor, which
// is no place at all.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}
	epoch, seq, ok := strings.Cut(s, ".")
	n, err := strconv.ParseUint(seq, 10, 64)
	if !ok || err != nil || epoch == "" || len(epoch) > 64 {
		return Cursor{}, fmt.Errorf("%w: %q", ErrCursor, s)
	}
	return Cursor{epoch, n}, nil
}

// changeLog has the IDs that changed last.
type changeLog struct {
	mu    sync.Mutex
	epoch string
	// seq is the number of the last change; first that of the first one kept.
	seq, first uint64
	// ids is a ring: change n is at (n-1) modulo changesKept.
	ids  []string
	wake chan struct{}
}

func newChangeLog() *changeLog { return &changeLog{wake: make(chan struct{})} }

func (l *changeLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch, l.seq, l.first, l.ids = rand.Text(), 0, 1, nil
	l.notify()
}

func (l *changeLog) add(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seq < changesKept {
		l.ids = append(l.ids, id)
	} else {
		l.ids[l.seq%changesKept] = id
	}
	l.seq++
	if l.seq-l.first >= changesKept {
		l.first = l.seq - changesKept + 1
	}
	l.notify()
}

func (l *changeLog) notify() {
	close(l.wake)
	l.wake = make(chan struct{})
}

// Changes are the IDs that changed after a cursor.
type Changes struct {
	// Reset is set when the cursor is of another session or too far back: all that
	// the client knows is to be forgotten, and IDs has every ID there is.
	Reset bool
	// IDs are in the order of their last change, each once.
	IDs  []string
	Next Cursor
	// More is closed at the next change.
	More <-chan struct{}
}

// Changes returns what changed after c. What an ID stands for now, Lookup says.
func (t *Table) Changes(c Cursor) Changes {
	l := t.changes
	l.mu.Lock()
	out := Changes{Next: Cursor{l.epoch, l.seq}, More: l.wake}
	if c.epoch == l.epoch && c.seq+1 >= l.first && c.seq <= l.seq {
		seen := make(map[string]bool)
		for n := l.seq; n > c.seq; n-- {
			id := l.ids[(n-1)%changesKept]
			if !seen[id] {
				seen[id] = true
				out.IDs = append(out.IDs, id)
			}
		}
		l.mu.Unlock()
		for i, j := 0, len(out.IDs)-1; i < j; i, j = i+1, j-1 {
			out.IDs[i], out.IDs[j] = out.IDs[j], out.IDs[i]
		}
		return out
	}
	l.mu.Unlock()
	// Read after the cursor: what changes meanwhile is seen again, not missed.
	out.Reset = true
	t.index.all(func(r *route) bool {
		out.IDs = append(out.IDs, r.id)
		return true
	})
	return out
}
