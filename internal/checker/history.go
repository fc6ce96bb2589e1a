package checker

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// EventGap is a span of one resource's events that the recorder did not get.
type EventGap struct {
	Resource Resource  `json:"resource"`
	After    RV        `json:"after"`
	Until    RV        `json:"until"`
	SeenAt   time.Time `json:"seenAt"`
}

type name struct{ namespace, name string }

// History is what a recording says was stored, and when. It is not safe for concurrent use.
type History struct {
	options Options

	templates  map[name]*timeline[templateState]
	pools      map[name]*timeline[poolState]
	namespaces map[string]*timeline[namespaceState]
	claims     map[types.UID]*object[claimState]
	sandboxes  map[types.UID]*object[sandboxState]
	pods       map[types.UID]*object[podState]

	sandboxesOfClaim map[types.UID][]types.UID
	sandboxesOfPool  map[types.UID][]types.UID
	podsOfSandbox    map[types.UID][]types.UID
	podsOfName       map[name][]types.UID
	takersOfPod      map[name][]types.UID
	claimsOfName     map[name][]types.UID
	nodes            map[string]*timeline[nodeState]
	contents         map[[32]byte]*content
	specs            map[string]specContent

	kept []Bind // of what was pruned

	binds       []*pending
	boundBefore map[string]int // by namespace
	eventGaps   []EventGap
	synced      map[Resource]RV
	intact      map[Resource]RV // up to here, events before the latest LIST are complete
	progress    map[Resource]RV
	listing     map[Resource]map[types.UID]bool
	since       time.Time
	until       time.Time
	closed      map[string]*Summary
	findings    []Bind
}

// pending is one bind as found in the history; final is its judgement once that cannot change any more.
type pending struct {
	sandbox, claim types.UID
	rv             RV
	seen           time.Time
	warm           bool
	bare           bool // the Sandbox is new, and names a Pod that was a member
	lost           bool // it happened in lost events: its resourceVersion and what was before are not known
	// named: the owner says that it is a claim. Others are binds if their UID is a claim's, which the watch of claims may tell
	// later. carried: that UID was an owner's before, under another kind.
	named, carried bool
	final          *Bind
	ended          bool // final tells also what became of the sandbox
	taken          bool
}

// NewHistory returns an empty history.
func NewHistory(options Options) *History {
	if options.BesideReady == 0 {
		options.BesideReady = DefaultBesideReady
	}
	return &History{
		options:          options,
		templates:        map[name]*timeline[templateState]{},
		pools:            map[name]*timeline[poolState]{},
		namespaces:       map[string]*timeline[namespaceState]{},
		claims:           map[types.UID]*object[claimState]{},
		sandboxes:        map[types.UID]*object[sandboxState]{},
		pods:             map[types.UID]*object[podState]{},
		sandboxesOfClaim: map[types.UID][]types.UID{},
		sandboxesOfPool:  map[types.UID][]types.UID{},
		podsOfSandbox:    map[types.UID][]types.UID{},
		podsOfName:       map[name][]types.UID{},
		takersOfPod:      map[name][]types.UID{},
		claimsOfName:     map[name][]types.UID{},
		nodes:            map[string]*timeline[nodeState]{},
		contents:         map[[32]byte]*content{},
		specs:            map[string]specContent{},
		boundBefore:      map[string]int{},
		synced:           map[Resource]RV{},
		intact:           map[Resource]RV{},
		progress:         map[Resource]RV{},
		listing:          map[Resource]map[types.UID]bool{},
		closed:           map[string]*Summary{},
	}
}

// Add takes the next event of its resource. An error means that the event could not be used, and names what is wrong with it.
func (h *History) Add(e Event) error {
	e, err := e.normalized()
	if err != nil {
		return err
	}
	if h.since.IsZero() {
		h.since = e.SeenAt
	}
	if h.until.Before(e.SeenAt) {
		h.until = e.SeenAt
	}
	switch e.Type {
	case Gap:
		h.intact[e.Resource] = e.After
		h.eventGaps = append(h.eventGaps, EventGap{Resource: e.Resource, After: e.After, Until: e.RV, SeenAt: e.SeenAt})
	case Synced:
		h.finishListing(e)
	case Progress:
		h.advance(e.Resource, e.RV)
	case Listed:
		if h.listing[e.Resource] == nil {
			h.listing[e.Resource] = map[types.UID]bool{}
		}
		h.listing[e.Resource][e.Object.GetUID()] = true
		h.addObject(e)
	default:
		h.addObject(e)
		h.advance(e.Resource, e.RV)
	}
	return nil
}

func (h *History) advance(r Resource, rv RV) { h.progress[r] = maxRV(h.progress[r], rv) }

// Synced reports whether every resource has had its consistent start, and the RV from which all of them are known.
func (h *History) Synced() (RV, bool) {
	var out RV
	for _, r := range Resources() {
		if h.synced[r] == "" {
			return "", false
		}
		out = maxRV(out, h.synced[r])
	}
	return out, true
}

// Watermark returns the RV up to which the events of every resource have arrived.
func (h *History) Watermark() RV {
	out := h.progress[Sandboxes]
	for _, r := range Resources() {
		if h.progress[r].Before(out) {
			out = h.progress[r]
		}
	}
	return out
}

// Settled reports whether every resource's events have arrived up to rv, so that no later event changes what was stored then.
func (h *History) Settled(rv RV) bool { return !h.Watermark().Before(rv) }

// EventGaps returns the spans of events that are missing.
func (h *History) EventGaps() []EventGap { return append([]EventGap(nil), h.eventGaps...) }

func (h *History) addObject(e Event) {
	switch e.Resource {
	case Templates:
		addNamed(h, h.templates, e, h.templateOf, nil)
	case Pools:
		h.addPool(e)
	case Namespaces:
		addCluster(h, h.namespaces, e, namespaceState{labels: e.Object.GetLabels()}, sameNamespace)
	case Nodes:
		addCluster(h, h.nodes, e, nodeOf(e.Object), sameNode)
	case Claims:
		h.addClaim(e)
	case Sandboxes:
		h.addSandbox(e)
	case Pods:
		h.addPod(e)
	}
}

func newEntry[S any](h *History, e Event, state S) entry[S] {
	out := entry[S]{first: e.RV, seen: e.SeenAt, state: state, gone: e.Type == Deleted, by: e.By}
	if out.gone && e.After != "" {
		out.inexact, out.after = true, e.After
	}
	if e.Type == Listed {
		out.inexact, out.after = true, h.intact[e.Resource]
	}
	return out
}

func addNamed[S any](h *History, m map[name]*timeline[S], e Event, state func(*unstructured.Unstructured) S, same func(a, b S) bool) {
	key := name{e.Object.GetNamespace(), e.Object.GetName()}
	if m[key] == nil {
		m[key] = &timeline[S]{}
	}
	now := state(e.Object)
	if last, ok := m[key].latest(); ok && e.bare() {
		now = last.state
	}
	m[key].add(newEntry(h, e, now), same)
}

func addCluster[S any](h *History, m map[string]*timeline[S], e Event, state S, same func(a, b S) bool) {
	if m[e.Object.GetName()] == nil {
		m[e.Object.GetName()] = &timeline[S]{}
	}
	m[e.Object.GetName()].add(newEntry(h, e, state), same)
}

// track returns the object's history, new if this is its first event.
func track[S any](m map[types.UID]*object[S], e Event) (o *object[S], isNew bool) {
	uid := e.Object.GetUID()
	if o, ok := m[uid]; ok {
		return o, false
	}
	o = &object[S]{uid: uid, namespace: e.Object.GetNamespace(), name: e.Object.GetName(),
		created: e.Object.GetCreationTimestamp().Time, born: e.Type == Added}
	m[uid] = o
	return o, true
}

func (h *History) addClaim(e Event) {
	o, isNew := track(h.claims, e)
	if isNew {
		key := name{o.namespace, o.name}
		h.claimsOfName[key] = append(h.claimsOfName[key], o.uid)
	}
	state := claimOf(e.Object)
	if prev, ok := o.line.latest(); ok {
		if e.bare() {
			status := state.status
			state = prev.state
			state.status = status
		}
		if !prev.last.Before(e.RV) {
			return
		}
		state.acted = prev.state.acted
		if state.names != prev.state.names || !reflect.DeepEqual(state.status, prev.state.status) {
			state.acted = e.RV
		}
		prev.state.status = nil // only ever compared with the next version's
	}
	// Two versions that differ in nothing judged are still two: the judgement asks for the controller's last write.
	o.line.add(newEntry(h, e, state), nil)
}

// addPod passes over Pods that neither a Sandbox nor a pool has and that no Sandbox would adopt.
func (h *History) addPod(e Event) {
	state, err := h.podOf(e)
	if err != nil || state.sandbox == "" && !state.tracked && state.pool == (owner{}) && h.pods[e.Object.GetUID()] == nil {
		return
	}
	o, isNew := track(h.pods, e)
	if isNew {
		key := name{o.namespace, o.name}
		h.podsOfName[key] = append(h.podsOfName[key], o.uid)
	}
	if of := h.podsOfSandbox[state.sandbox]; state.sandbox != "" && !slices.Contains(of, o.uid) {
		h.podsOfSandbox[state.sandbox] = append(of, o.uid)
	}
	o.line.add(newEntry(h, e, state), samePod)
	o.specKey = e.SpecKey
}

func (h *History) addSandbox(e Event) {
	o, isNew := track(h.sandboxes, e)
	state := h.sandboxOf(e.Object, e.SpecKey)
	prev, had := o.line.latest()
	var before sandboxState
	if had {
		before = prev.state
	}
	if e.bare() {
		state = before
	}
	if !o.line.add(newEntry(h, e, state), sameSandbox) {
		return
	}
	if pool, ok := state.controller(); ok && pool.isPool() {
		if of := h.sandboxesOfPool[pool.uid]; !slices.Contains(of[max(0, len(of)-1):], o.uid) {
			h.sandboxesOfPool[pool.uid] = append(of, o.uid)
		}
	}
	if namesAnotherPod(e, o, state) {
		h.noteTaker(o, state.podName)
	}
	h.findBinds(e, o, state, before, isNew)
}

func (h *History) isMemberOf(s sandboxState, pool types.UID) bool {
	o, ok := h.member(s)
	return ok && o.uid == pool
}

// findBinds notes every owner that the Sandbox has from this version on and that is, or may turn out to be, a claim.
func (h *History) findBinds(e Event, o *object[sandboxState], state, before sandboxState, isNew bool) {
	named, had := map[types.UID]bool{}, map[types.UID]bool{}
	for _, prev := range before.owners {
		had[prev.uid] = true
		named[prev.uid] = named[prev.uid] || prev.isClaim()
	}
	for _, now := range state.owners {
		if named[now.uid] || had[now.uid] && !now.isClaim() {
			continue
		}
		carried := had[now.uid]
		had[now.uid], named[now.uid] = true, named[now.uid] || now.isClaim()
		if !carried {
			h.sandboxesOfClaim[now.uid] = append(h.sandboxesOfClaim[now.uid], o.uid)
		}
		if isNew && e.Type == Listed && h.synced[Sandboxes] == "" {
			if now.isClaim() {
				h.boundBefore[o.namespace]++
			}
			continue
		}
		h.binds = append(h.binds, &pending{sandbox: o.uid, claim: now.uid, rv: e.RV, seen: e.SeenAt, warm: !isNew,
			bare: namesAnotherPod(e, o, state), lost: e.Type == Listed, named: now.isClaim(), carried: carried})
	}
}

// isBind decides by UID, as upstream does, where the owner does not say that it is a claim.
func (h *History) isBind(p *pending) bool {
	known := h.claims[p.claim] != nil
	if p.carried {
		return !known
	}
	return p.named || known
}

func (h *History) namespacesSeen() []string {
	seen := map[string]bool{}
	for ns := range maps.Keys(h.closed) {
		seen[ns] = true
	}
	for _, o := range h.claims {
		seen[o.namespace] = true
	}
	for _, o := range h.sandboxes {
		seen[o.namespace] = true
	}
	return sortedKeys(seen)
}

// templateNames lists the namespace's templates in a stable order.
func (h *History) templateNames(namespace string) []name {
	var out []name
	for key := range h.templates {
		if key.namespace == namespace {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(a, b name) int { return strings.Compare(a.name, b.name) })
	return out
}
