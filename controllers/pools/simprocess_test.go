package pools

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
)

// process is one replica: its caches, each as late as the simulation has it, and,
// while it leads, the real controller of pools.
type process struct {
	*simulation
	controller *Controller
	due        map[client.ObjectKey]time.Time
	// delivered is how much of each stream its caches have.
	delivered [simStreams]int
	objects   [simStreams]map[client.ObjectKey]*unstructured.Unstructured
	ofPool    map[types.UID][]*members.Member
	// audits is the mode that its cache shows.
	audits bool
}

func (s *simulation) newProcess() *process {
	p := &process{simulation: s, ofPool: map[types.UID][]*members.Member{}}
	for i := range p.objects {
		p.objects[i] = map[client.ObjectKey]*unstructured.Unstructured{}
	}
	return p
}

// behind is a process whose caches show what another's do.
func (p *process) behind() *process {
	next := p.newProcess()
	next.delivered, next.audits = p.delivered, p.audits
	for i := range p.objects {
		next.objects[i] = maps.Clone(p.objects[i])
	}
	for pool, all := range p.ofPool {
		next.ofPool[pool] = slices.Clone(all)
	}
	return next
}

// lead starts the controller: it looks at every pool.
func (p *process) lead() {
	p.due = map[client.ObjectKey]time.Time{}
	shown := func(context.Context, string, string) (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.audits, nil
	}
	stored := func(context.Context, string, string) (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.audited, nil
	}
	view := &View{cache: simCache{p}, lists: simStore{p.simulation}, members: p, pods: noPods{}, kinds: poolKinds, objects: agentsandbox.Objects{}, barePods: agentsandbox.BarePods{}}
	view.nodes = func(context.Context) (worseNodes, error) { return worseNodes{}, nil }
	p.controller = &Controller{
		platform: &simPlatform{agentsandbox.Platform{History: simHistory{p.simulation}, Defaults: settings.Defaults{Strategy: freshness.OnReplenish}}, p.simulation},
		kinds:    agentsandbox.Objects{}.Kinds(), visible: agentsandbox.Objects{}, enforced: shown, enforcedNow: stored, leads: func() bool { return true }, ready: map[types.UID]sets.Set[types.UID]{}, view: view,
		client: simWrites{simulation: p.simulation}, refused: &Refused{hints: make(hints.Queue[Refusal], 1)}, metrics: NewMetrics(prometheus.NewRegistry()),
		events: &events.FakeRecorder{}, clock: p.clock, records: map[types.NamespacedName]*poolRecord{},
	}
	p.controller.budget = NewBudget(p.budget, p.pace, p.call)
	for _, pool := range p.pools {
		p.call(pool.key, 0)
	}
}

// showMode has the cache show the mode as it is stored, and every pool looked at when
// that is another one.
func (p *process) showMode() {
	if p.audits == p.audited {
		return
	}
	p.audits = p.audited
	if p.controller != nil {
		for _, pool := range p.pools {
			p.call(pool.key, batchPeriod)
		}
	}
}

// call has a pool looked at.
func (p *process) call(pool client.ObjectKey, after time.Duration) {
	at := p.clock.Now().Add(after)
	if due, waits := p.due[pool]; !waits || at.Before(due) {
		p.due[pool] = at
	}
}

// stalled reports whether the leader expects nothing of a pool any more.
func (p *process) stalled(pool *simPool) bool {
	return p.controller.budget.accounts[pool.stored.GetUID()].Stalled
}

func (s *simulation) uidOf(key client.ObjectKey) types.UID {
	i := slices.IndexFunc(s.pools, func(p *simPool) bool { return p.key == key })
	return s.pools[i].stored.GetUID()
}

// reconcile brings a pool a step further.
func (p *process) reconcile(pool client.ObjectKey) {
	delete(p.due, pool)
	p.stats.reconciles++
	uid := p.uidOf(pool)
	was := p.controller.budget.accounts[uid]
	// What the last leader was about to do it may not have done.
	p.over = p.over || was.Stalled || !p.controller.handover.taken
	excused := p.over
	p.mu.Unlock()
	result, err := p.controller.Reconcile(logf.IntoContext(context.Background(), logr.Discard()), reconcile.Request{NamespacedName: pool})
	p.mu.Lock()
	p.end()
	if is := p.controller.budget.accounts[uid]; excused {
		p.over = p.controller.budget.used("") > p.budget
	} else {
		p.charged(was, is, p.controller.budget.used(""))
	}
	switch {
	case err != nil:
		p.stats.failures++
		p.logf("the plan for %s fails: %v", pool.Name, err)
		p.call(pool, 100*time.Millisecond)
	case result.RequeueAfter > 0:
		p.call(pool, result.RequeueAfter)
	}
}

// show tells caches of up to n changes.
func (p *process) show(of stream, n int) {
	for ; n > 0 && p.delivered[of] < len(p.logs[of]); n-- {
		h := p.logs[of][p.delivered[of]]
		p.delivered[of]++
		if of != memberChanges {
			p.objects[of][h.object] = h.stored
			p.requeue(of, h)
			continue
		}
		all := p.ofPool[h.pool]
		at, found := slices.BinarySearchFunc(all, h.member, oldestFirst)
		var old, is *members.Member
		if found {
			old = all[at]
		}
		switch {
		case h.gone && found:
			p.ofPool[h.pool] = slices.Delete(all, at, at+1)
		case !h.gone && found:
			all[at], is = h.member, h.member
		case !h.gone:
			p.ofPool[h.pool], is = slices.Insert(all, at, h.member), h.member
		}
		if p.controller != nil && (old != nil || is != nil) {
			for _, pool := range p.controller.poolsOfMember(old, is) {
				p.call(pool, batchPeriod)
			}
		}
	}
}

// requeue has those pools looked at that a pool or a template is about.
func (p *process) requeue(of stream, h happening) {
	if p.controller == nil {
		return
	}
	for _, pool := range p.objects[poolChanges] {
		key := client.ObjectKeyFromObject(pool)
		if of == poolChanges && key == h.object || of == templateChanges && agentsandbox.TemplateOf(pool) == h.object.Name {
			p.call(key, batchPeriod)
		}
	}
}

func oldestFirst(a, b *members.Member) int {
	return cmp.Or(a.Created().Compare(b.Created()), cmp.Compare(a.Name, b.Name))
}

func (p *process) OfPool(pool types.UID) []members.WithPod {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []members.WithPod
	for _, m := range p.ofPool[pool] {
		out = append(out, members.WithPod{Member: m})
	}
	return out
}

func (p *process) Reduce(u *unstructured.Unstructured) *members.Member {
	return p.reducer.Member(u, nil)
}

func (p *process) Sandbox(types.NamespacedName) *members.Member {
	panic("nobody asks for a single member")
}

type noPods struct{}

func (noPods) PodsOn(string) []*members.Pod { return nil }

// simCache reads what caches show.
type simCache struct{ *process }

func (c simCache) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := poolChanges
	if obj.GetObjectKind().GroupVersionKind() == poolKinds.Templates {
		of = templateChanges
	}
	is := c.objects[of][key]
	if is == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	obj.(*unstructured.Unstructured).Object = is.Object
	return nil
}

func (c simCache) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nobody lists what caches show")
}

// simStore lists what is stored.
type simStore struct{ *simulation }

func (c simStore) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("nobody reads a single object")
}

func (c simStore) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.chance(c.failing, "list", 0) {
		return apierrors.NewInternalError(errors.New("etcd is away"))
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	into := list.(*metav1.PartialObjectMetadataList)
	into.Items, into.ResourceVersion = nil, strconv.FormatUint(c.version(0), 10)
	if into.GroupVersionKind() == listOf(poolKinds.Pools) {
		for _, p := range c.pools {
			into.Items = append(into.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: p.key.Name, UID: p.stored.GetUID(), Annotations: p.stored.GetAnnotations(),
			}})
		}
		return nil
	}
	for _, p := range c.pools {
		for _, m := range p.members {
			if meta := m.reduced.Metadata(); o.LabelSelector.Matches(labels.Set(meta.Labels)) {
				into.Items = append(into.Items, metav1.PartialObjectMetadata{ObjectMeta: meta})
			}
		}
	}
	return nil
}

// simHistory knows all versions of a template.
type simHistory struct{ *simulation }

func (h simHistory) Revisions(_ context.Context, template *unstructured.Unstructured) ([]platform.Recorded, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.templates {
		if t.live.template.GetName() == template.GetName() {
			return t.recorded[:min(len(t.recorded), 10)], nil
		}
	}
	return nil, nil
}

// simPlatform reads single objects as they are stored.
type simPlatform struct {
	agentsandbox.Platform
	simulation *simulation
}

func (p *simPlatform) Get(_ context.Context, gr schema.GroupResource, _, name string) (*unstructured.Unstructured, error) {
	s := p.simulation
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chance(s.failing, "get", 0) {
		return nil, apierrors.NewInternalError(errors.New("etcd is away"))
	}
	if gr == agentsandbox.Templates {
		for _, t := range s.templates {
			if t.live.template.GetName() == name {
				return t.live.template, nil
			}
		}
		return nil, nil
	}
	for _, pool := range s.pools {
		if pool.key.Name == name {
			return pool.stored, nil
		}
	}
	return nil, nil
}
