package routes

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Clock tells the time. It is k8s.io/utils/clock.PassiveClock.
type Clock interface {
	Now() time.Time
	Since(time.Time) time.Duration
}

type systemClock struct{}

func (systemClock) Now() time.Time                  { return time.Now() }
func (systemClock) Since(t time.Time) time.Duration { return time.Since(t) }

// Defaults of Options.
const (
	DefaultMaxAge    = 5 * time.Second
	DefaultMaxFences = 100_000
	// maxUndecided bounds the live reads that wait.
	maxUndecided = 16_384
)

// Options set up a Table. The zero value has the defaults.
type Options struct {
	// MaxAge is how old the view may be for an answer.
	MaxAge time.Duration
	// MaxFences bounds the deleted objects that are remembered, for Sandboxes and
	// for Pods each.
	MaxFences int
	// Namespaces are the only ones that are looked at; all when empty.
	Namespaces []string
	// ByUID has LookupUID work, at the cost of a second index.
	ByUID bool
	Clock Clock
}

// Kind is a kind of objects that a table follows.
type Kind uint8

// Both kinds.
const (
	Sandboxes Kind = iota
	Pods
	kinds
)

func (k Kind) String() string { return [...]string{"sandboxes", "pods"}[k] }

// Ref names an object.
type Ref struct {
	Kind            Kind
	Namespace, Name string
}

// Table is the route table. One Session at a time writes to it; lookups wait
// for nothing.
type Table struct {
	opts  Options
	clock Clock
	base  time.Time
	index *index
	// byUID is nil without Options.ByUID.
	byUID *index
	// proven is the time of the state that the view is known to include, in
	// nanoseconds since base; 0 while the view is incomplete.
	proven atomic.Int64

	mu      sync.Mutex
	session *Session
	// listed has the versions of the last lists; what they lacked was not there.
	listed   [kinds]Version
	provenOf [kinds]int64
	ledgers  [kinds]*ledger
	// objects are by name: mostly a sandbox and its Pod have the same.
	objects map[objectKey]object
	counts  [kinds]int
	// addresses has the Pod that each address belongs to, displaced those that
	// claim an address of another.
	addresses map[netip.Addr]*pod
	displaced map[netip.Addr][]objectKey
	// contested has the sandboxes whose ID another one has.
	contested map[string][]objectKey
	// suspended has the sandboxes that a hint took out of service, by the last one.
	suspended map[objectKey]suspension
	hints     uint64
	undecided map[Ref]struct{}
	overflow  bool
	changes   *changeLog
}

// New returns an empty table, which answers NotKnown until a session has listed
// both kinds of objects.
func New(o Options) *Table {
	if o.MaxAge <= 0 {
		o.MaxAge = DefaultMaxAge
	}
	if o.MaxFences <= 0 {
		o.MaxFences = DefaultMaxFences
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	t := &Table{opts: o, clock: o.Clock, index: newIndex(hasID), changes: newChangeLog()}
	if o.ByUID {
		t.byUID = newIndex(hasUID)
	}
	// Time 0 means "not known": base lies a moment before anything can happen.
	t.base = t.clock.Now().Add(-time.Nanosecond)
	t.reset()
	return t
}

// MaxAge is how old the view may be for an answer.
func (t *Table) MaxAge() time.Duration { return t.opts.MaxAge }

func (t *Table) reset() {
	t.proven.Store(0)
	t.index.clear()
	if t.byUID != nil {
		t.byUID.clear()
	}
	t.session = nil
	t.listed, t.provenOf = [kinds]Version{}, [kinds]int64{}
	t.objects, t.counts = make(map[objectKey]object), [kinds]int{}
	t.addresses, t.displaced = make(map[netip.Addr]*pod), make(map[netip.Addr][]objectKey)
	t.contested, t.suspended = make(map[string][]objectKey), make(map[objectKey]suspension)
	t.undecided, t.overflow = make(map[Ref]struct{}), false
	t.ledgers[Sandboxes] = newLedger(t.opts.MaxFences, t.forget)
	t.ledgers[Pods] = newLedger(t.opts.MaxFences, func(objectKey, fence) {})
	t.ledgers[Pods].selected = true
	t.changes.reset()
}

// Lookup says where the sandbox of that ID is.
func (t *Table) Lookup(id string) Answer { return t.lookup(t.index, id) }

// LookupUID says where the sandbox of that UID is. It needs Options.ByUID.
func (t *Table) LookupUID(uid UID) Answer {
	if t.byUID == nil {
		return Answer{Reason: ViewIncomplete, Age: -1}
	}
	return t.lookup(t.byUID, string(uid[:]))
}

func (t *Table) lookup(x *index, id string) Answer {
	// What is proven is read first: the route that is read after it is at least as
	// new as that.
	proven := t.proven.Load()
	if proven == 0 {
		return Answer{Reason: ViewIncomplete, Age: -1}
	}
	now := int64(t.clock.Since(t.base))
	age := time.Duration(now - proven)
	if age > t.opts.MaxAge {
		return Answer{Reason: ViewTooOld, Age: age}
	}
	r := x.get(id)
	if r == nil {
		if t.proven.Load() == 0 {
			return Answer{Reason: ViewIncomplete, Age: -1}
		}
		return Answer{Status: NotFound, Age: age}
	}
	if r.expires != 0 && now >= r.expires && r.status == Serving {
		return Answer{Status: NotRunning, Reason: Expired, Age: age, route: r}
	}
	return Answer{Status: r.status, Reason: r.reason, Age: age, route: r}
}

// Age is how old the view is at most; false while it is incomplete.
func (t *Table) Age() (time.Duration, bool) {
	proven := t.proven.Load()
	if proven == 0 {
		return 0, false
	}
	return time.Duration(int64(t.clock.Since(t.base)) - proven), true
}

// Ready reports whether the table answers, which is when its view is complete
// and young enough.
func (t *Table) Ready() bool {
	age, ok := t.Age()
	return ok && age <= t.opts.MaxAge
}

func (t *Table) inScope(namespace string) bool {
	return len(t.opts.Namespaces) == 0 || slices.Contains(t.opts.Namespaces, namespace)
}

// Hint takes a sandbox out of service when somebody says that it is dead. It is
// back as soon as the watch is proven to be newer than the hint and the sandbox
// is still there, or a live read has found it. No other hint has any effect.
func (t *Table) Hint(h Hint) Outcome {
	if !t.inScope(h.Namespace) {
		return OutOfScope
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := keyOf(h.Namespace, h.Name)
	r := t.objects[key].sandbox
	if h.State.Kept() || r == nil || (h.UID != UID{} && h.UID != r.uid) {
		return Ignored
	}
	if h.Version < r.version {
		return Stale
	}
	t.hints++
	t.suspended[key] = suspension{since: t.elapsed(), number: t.hints}
	t.publish(*r)
	return Applied
}

// suspension is what a hint did.
type suspension struct {
	// since is when it came, number how many had come by then.
	since  int64
	number uint64
}

func (t *Table) elapsed() int64 { return int64(t.clock.Since(t.base)) }

// Undecided returns the objects that a live read has to decide about. When all
// is false some were forgotten, and everything has to be listed again.
func (t *Table) Undecided() (refs []Ref, all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref := range t.undecided {
		refs = append(refs, ref)
	}
	return refs, !t.overflow
}

func (t *Table) want(ref Ref) {
	if _, ok := t.undecided[ref]; !ok && len(t.undecided) >= maxUndecided {
		t.overflow = true
		return
	}
	t.undecided[ref] = struct{}{}
}

// Stats are counts of what a table holds.
type Stats struct {
	Routes, Pods                  int
	SandboxFences, PodFences      int
	SandboxFloor, PodFloor        Version
	Undecided, Suspended          int
	DisplacedAddresses, Contested int
	// Contenders wait for the contested IDs.
	Contenders int
}

// Stats returns the current counts.
func (t *Table) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	contenders := 0
	for _, waiting := range t.contested {
		contenders += len(waiting)
	}
	return Stats{
		Routes: t.counts[Sandboxes], Pods: t.counts[Pods],
		SandboxFences: len(t.ledgers[Sandboxes].fences), PodFences: len(t.ledgers[Pods].fences),
		SandboxFloor: t.ledgers[Sandboxes].floor, PodFloor: t.ledgers[Pods].floor,
		Undecided: len(t.undecided), Suspended: len(t.suspended),
		DisplacedAddresses: len(t.displaced), Contested: len(t.contested), Contenders: contenders,
	}
}
