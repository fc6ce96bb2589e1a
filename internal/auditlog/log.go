package auditlog

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
)

// Log is what was read of a cluster's audit logs. It grows with the writes to the objects that are judged, not with the logs.
type Log struct {
	digester digester
	objects  map[string]*object // by UID
	texts    texts
	scratch  []byte
	// specs are texts, by number, and uses of how many versions each is beside the first.
	specs    map[digest]uint32
	uses     map[uint32]uint32
	users    map[string]*string
	versions []version
	lost     lostWrites
	coverage coverage
}

// New returns an empty log.
func New() *Log {
	return &Log{
		digester: digester{maphash.MakeSeed(), maphash.MakeSeed()},
		objects:  map[string]*object{}, specs: map[digest]uint32{}, uses: map[uint32]uint32{}, users: map[string]*string{},
		coverage: newCoverage(),
	}
}

// Read adds a file. It can be called for several, in any order; the name is for messages. A last line that is not written
// to its end is passed over, and told by Coverage.
func (l *Log) Read(name string, in io.Reader) error {
	v, err := newValues(in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer v.stop()
	for {
		value, line, cut, err := v.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		err = unwrap(value, l.add)
		switch {
		case err == nil:
		case cut || errors.Is(err, errCutMessage):
			l.coverage.cutAt(name, line)
		default:
			return fmt.Errorf("%s: line %d: not an audit event: %w", name, line, err)
		}
	}
}

// Looks reports whether a file whose beginning this is may be an audit log, and not a recording of ours.
func Looks(head []byte) bool {
	if len(head) > 1 && head[0] == 0x1f && head[1] == 0x8b {
		return true
	}
	at := space(head, 0)
	if at >= len(head) {
		return false
	}
	switch c := head[at]; {
	case c == '[', c >= '0' && c <= '9':
		return true
	case c != '{':
		return false
	}
	recorded := false
	// It ends early, as the head does.
	_ = fields(head[at:], func(key, _ []byte) error {
		recorded = recorded || string(key) == "type"
		return nil
	})
	return !recorded
}

// subresources whose answer is the object itself. The others change nothing that is judged, or show it with the next write.
var subresources = []string{"", "status", "ephemeralcontainers", "resize"}

func (l *Log) add(raw []byte) error {
	e, err := parse(raw)
	if err != nil {
		return err
	}
	if !l.coverage.count(&e) || !e.writes() || !slices.Contains(subresources, e.subresource) {
		return nil
	}
	if e.level != levelResponse || e.truncated || len(e.response) == 0 || e.response[0] != '{' {
		l.lose(&e)
		return nil
	}
	s, err := parseStored(e.response)
	if err != nil {
		return fmt.Errorf("responseObject: %w", err)
	}
	if e.verb == "deletecollection" {
		return l.collection(&e, s)
	}
	return l.keep(&e, s)
}

func (l *Log) lose(e *event) {
	l.coverage.lose(e)
	l.lost.add(e)
}

// collection is the answer to a DELETE of many: what they were before. Pods with a grace period are deleted once more.
func (l *Log) collection(e *event, s stored) error {
	if len(s.items) == 0 || s.items[0] != '[' {
		l.lose(e)
		return nil
	}
	return items(s.items, func(one []byte) error {
		item, err := parseStored(one)
		if err != nil {
			return fmt.Errorf("responseObject.items: %w", err)
		}
		if len(item.final) > 0 || e.kind.Resource == checker.Pods {
			return nil
		}
		item.kind = "Status"
		item.detailUID = item.uid
		return l.keep(e, item)
	})
}

func (l *Log) keep(e *event, s stored) error {
	v := version{received: e.received.UnixMicro(), done: e.done.UnixMicro(), by: l.user(e.user), what: changed}
	if uid := s.deletes(e); uid != "" {
		v.object, v.what = l.object(e, stored{uid: uid, name: e.name, namespace: e.namespace}), goneUnordered
		l.versions = append(l.versions, v)
		l.coverage.judged(e.kind)
		return nil
	}
	if s.kind != "" && s.kind != e.kind.Name || s.uid == "" {
		l.lose(e)
		return nil
	}
	rv, err := strconv.ParseUint(s.rv, 10, 64)
	if err != nil || rv == 0 {
		return fmt.Errorf("responseObject.metadata.resourceVersion: %q is not a number above 0", shown([]byte(s.rv)))
	}
	d, err := s.details(e.kind.Resource, l.digester)
	if err != nil {
		return fmt.Errorf("responseObject.%w", err)
	}
	l.coverage.judged(e.kind)
	if e.kind.Resource == checker.Pods && l.objects[s.uid] == nil && !d.ofSandbox() {
		return nil
	}
	v.rv, v.object, v.generation = rv, l.object(e, s), s.generation
	l.scratch = d.pack(l.scratch[:0])
	if v.details, err = l.texts.add(l.scratch); err != nil {
		return err
	}
	if v.spec, err = l.spec(e.kind.Resource, s.spec); err != nil {
		return err
	}
	if v.what = s.after(e); v.what == created {
		v.object.births++
	}
	l.versions = append(l.versions, v)
	return nil
}

// deletes is the UID of what a DELETE has taken away whose answer has no resourceVersion: a Status, or where another DELETE was
// faster, what was read before that.
func (s *stored) deletes(e *event) string {
	switch {
	case !strings.HasPrefix(e.verb, "delete"):
	case s.kind == "Status":
		return s.detailUID
	case s.rv == "":
		return s.uid
	}
	return ""
}

// after says what a write did after which this is stored.
func (s *stored) after(e *event) writeKind {
	switch {
	case (len(text(s.deleting)) > 0 || e.verb == "delete") && !s.held():
		return goneUnordered
	case e.verb == "create" || e.code == statusCreated:
		return created
	}
	return changed
}

// ofSandbox: the Pod is of a Sandbox, or one that the Sandbox's controller would take over.
func (d *details) ofSandbox() bool {
	return slices.ContainsFunc(d.owners, func(o ownerRef) bool { return o.kind == "Sandbox" }) ||
		slices.ContainsFunc(d.labels, func(p pair) bool { return strings.HasPrefix(p.key, "agents.x-k8s.io/") })
}

func (l *Log) user(name string) *string {
	if known, ok := l.users[name]; ok {
		return known
	}
	own := strings.Clone(name)
	l.users[own] = &own
	return &own
}

func (l *Log) object(e *event, s stored) *object {
	if o, ok := l.objects[s.uid]; ok {
		if o.apiVersion == "" {
			o.apiVersion = strings.Clone(s.apiVersion)
		}
		return o
	}
	o := &object{kind: e.kind, namespace: strings.Clone(s.namespace), name: strings.Clone(s.name), uid: strings.Clone(s.uid),
		apiVersion: strings.Clone(s.apiVersion)}
	// One that cannot be read is as unknown as none.
	o.created, _ = time.Parse(time.RFC3339, s.created)
	l.objects[o.uid] = o
	return o
}

// spec keeps a spec, and returns its number; equal ones are kept once.
func (l *Log) spec(r checker.Resource, raw []byte) (uint32, error) {
	if len(raw) == 0 || r == checker.Namespaces {
		return 0, nil
	}
	key := l.digester.of(raw)
	if number, known := l.specs[key]; known {
		l.uses[number]++
		return number, nil
	}
	number, err := l.texts.add(raw)
	l.specs[key] = number
	return number, err
}
