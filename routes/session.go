package routes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Session is one uninterrupted view of a cluster. It begins with lists of both
// kinds; what comes from an older session has no effect.
type Session struct{ table *Table }

// Begin ends the session before and forgets all it knew.
func (t *Table) Begin() *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reset()
	t.session = &Session{table: t}
	return t.session
}

func (s *Session) do(f func(*Table) Outcome) Outcome {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session != s {
		return Superseded
	}
	return f(t)
}

// in is do for one namespace.
func (s *Session) in(namespace string, f func(*Table) Outcome) Outcome {
	if !s.table.inScope(namespace) {
		return OutOfScope
	}
	return s.do(f)
}

// Sandbox applies an event that has the sandbox as it is. One in state Dead is
// a delete.
func (s *Session) Sandbox(o Sandbox) Outcome {
	return s.in(o.Namespace, func(t *Table) Outcome { return t.applySandbox(o, false) })
}

// SandboxDeleted applies a delete. Version 0 stands for a deletion whose
// version is not known, a zero UID for one of whatever has the name.
func (s *Session) SandboxDeleted(namespace, name string, uid UID, v Version) Outcome {
	return s.in(namespace, func(t *Table) Outcome { return t.deleteSandbox(keyOf(namespace, name), uid, v) })
}

// Pod applies an event that has the Pod as it is.
func (s *Session) Pod(o Pod) Outcome {
	return s.in(o.Namespace, func(t *Table) Outcome { return t.applyPod(o, 0) })
}

// PodDeleted is SandboxDeleted for Pods.
func (s *Session) PodDeleted(namespace, name string, uid UID, v Version) Outcome {
	return s.in(namespace, func(t *Table) Outcome { return t.deletePod(keyOf(namespace, name), uid, v) })
}

// ReplaceSandboxes applies a consistent list that was asked for at the given
// time. What it lacks is deleted.
func (s *Session) ReplaceSandboxes(list []Sandbox, v Version, asked time.Time) Outcome {
	return s.replace(Sandboxes, v, asked, func(t *Table) Outcome {
		there := make(map[objectKey]bool, len(list))
		for _, o := range list {
			key := keyOf(o.Namespace, o.Name)
			r, dying := t.objects[key].sandbox, !o.State.Kept()
			if t.inScope(o.Namespace) && (r == nil && !dying && o.Version <= t.listed[Sandboxes] || r != nil && t.rewritten(r, o, v) ||
				t.ledgers[Sandboxes].contradicts(key, o.UID, o.Version, v, dying)) {
				return Restored
			}
			there[key] = t.inScope(o.Namespace)
		}
		for _, o := range list {
			if t.inScope(o.Namespace) {
				t.applySandbox(o, true)
			}
		}
		for key, o := range t.objects {
			if r := o.sandbox; r != nil && !there[key] && r.version <= v {
				t.deleteSandbox(key, r.uid, v)
			}
		}
		return Applied
	})
}

// ReplacePods is ReplaceSandboxes for Pods.
func (s *Session) ReplacePods(list []Pod, v Version, asked time.Time) Outcome {
	return s.replace(Pods, v, asked, func(t *Table) Outcome {
		there := make(map[objectKey]bool, len(list))
		for _, o := range list {
			key := keyOf(o.Namespace, o.Name)
			p := t.objects[key].pod
			if t.inScope(o.Namespace) && (p == nil && o.Version <= t.listed[Pods] || p != nil && t.podRewritten(p, o, v) ||
				t.ledgers[Pods].contradicts(key, o.UID, o.Version, v, false)) {
				return Restored
			}
			there[key] = t.inScope(o.Namespace)
		}
		for _, o := range list {
			if t.inScope(o.Namespace) {
				t.applyPod(o, v)
			}
		}
		for key, o := range t.objects {
			if p := o.pod; p != nil && !there[key] && p.version <= v {
				t.deletePod(key, p.uid, v)
			}
		}
		return Applied
	})
}

func (s *Session) replace(kind Kind, v Version, asked time.Time, apply func(*Table) Outcome) Outcome {
	return s.do(func(t *Table) Outcome {
		if v < t.ledgers[kind].newest || apply(t) == Restored {
			t.reset()
			return Restored
		}
		t.ledgers[kind].raise(v)
		t.listed[kind] = v
		t.prove(kind, asked)
		return Applied
	})
}

// Listed says that everything of a kind has been applied, event by event, that
// was there at the given time. It is for those who have no whole list; nothing is
// deleted by it.
func (s *Session) Listed(kind Kind, asked time.Time) Outcome {
	return s.do(func(t *Table) Outcome {
		ledger := t.ledgers[kind]
		ledger.raise(max(ledger.newest, 1))
		t.listed[kind] = ledger.newest
		t.prove(kind, asked)
		return Applied
	})
}

// Proven says that the view of one kind includes everything that was stored
// before the given time.
func (s *Session) Proven(kind Kind, at time.Time) Outcome {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session != s {
		return Superseded
	}
	t.prove(kind, at)
	return Applied
}

// prove takes no proof of what is to come, as the clock of somebody else can
// give it: that would be believed for longer than MaxAge.
func (t *Table) prove(kind Kind, at time.Time) {
	t.provenOf[kind] = max(t.provenOf[kind], min(int64(at.Sub(t.base)), t.elapsed()))
	if kind == Sandboxes {
		t.liftSuspensions()
	}
	if t.listed[Sandboxes] > 0 && t.listed[Pods] > 0 {
		t.proven.Store(min(t.provenOf[Sandboxes], t.provenOf[Pods]))
	}
}

// liftSuspensions ends those that the view is newer than: had the sandbox been
// deleted before the hint came, the view would have shown it.
func (t *Table) liftSuspensions() {
	for key, h := range t.suspended {
		if t.provenOf[Sandboxes] <= h.since {
			continue
		}
		delete(t.suspended, key)
		if r := t.objects[key].sandbox; r != nil {
			t.publish(*r)
		}
	}
}

// Reader reads objects as they are stored now.
type Reader interface {
	// ReadSandbox returns false when there is none of that name.
	ReadSandbox(ctx context.Context, namespace, name string) (Sandbox, bool, error)
	// ReadPod returns false when there is none of that name, or not among those that
	// the session is told of.
	ReadPod(ctx context.Context, namespace, name string) (Pod, bool, error)
}

// ErrUndecided is returned when the table changed too often during live reads.
var ErrUndecided = errors.New("could not decide")

const resolveAttempts = 3

// Resolve decides about an object by a live read. It is what the table asks for
// in Undecided, and what may follow a hint.
func (s *Session) Resolve(ctx context.Context, ref Ref, reader Reader) (Outcome, error) {
	if !s.table.inScope(ref.Namespace) {
		return OutOfScope, nil
	}
	for range resolveAttempts {
		// A deletion that is applied during the read leaves a fence, or has raised
		// the floor: then the read may be older than the deletion.
		m := s.mark(ref)
		settle, err := read(ctx, ref, reader)
		if err != nil {
			return Undecided, fmt.Errorf("read %s %s/%s: %w", ref.Kind, ref.Namespace, ref.Name, err)
		}
		retry := false
		outcome := s.do(func(t *Table) Outcome {
			if t.ledgers[ref.Kind].floor != m.floor {
				retry = true
				return Undecided
			}
			delete(t.undecided, ref)
			return settle(t, m)
		})
		if !retry {
			return outcome, nil
		}
	}
	return Undecided, fmt.Errorf("read %s %s/%s: %w", ref.Kind, ref.Namespace, ref.Name, ErrUndecided)
}

// mark is how a table was when a live read began, which may be older than what
// came since.
type mark struct {
	floor Version
	// record is the version of the record there was; 0 for none.
	record Version
	// hints is how many had come.
	hints uint64
}

func (s *Session) mark(ref Ref) mark {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	m := mark{floor: t.ledgers[ref.Kind].floor, hints: t.hints}
	key := keyOf(ref.Namespace, ref.Name)
	if ref.Kind == Sandboxes {
		if r := t.objects[key].sandbox; r != nil {
			m.record = r.version
		}
	} else if p := t.objects[key].pod; p != nil {
		m.record = p.version
	}
	return m
}

// read returns what a live read does to the table.
func read(ctx context.Context, ref Ref, reader Reader) (func(*Table, mark) Outcome, error) {
	key := keyOf(ref.Namespace, ref.Name)
	if ref.Kind == Sandboxes {
		o, ok, err := reader.ReadSandbox(ctx, ref.Namespace, ref.Name)
		return func(t *Table, m mark) Outcome {
			if ok {
				return t.confirmSandbox(o, m.hints)
			}
			if r := t.objects[key].sandbox; r != nil && r.version == m.record {
				return t.deleteSandbox(key, r.uid, 0)
			}
			return Stale
		}, err
	}
	o, ok, err := reader.ReadPod(ctx, ref.Namespace, ref.Name)
	return func(t *Table, m mark) Outcome {
		if ok {
			return t.confirmPod(o)
		}
		if p := t.objects[key].pod; p != nil && p.version == m.record {
			return t.deletePod(key, p.uid, 0)
		}
		return Stale
	}, err
}
