package pools

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Platform reads objects as they are stored, and compares members with them.
type Platform interface {
	Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error)
	platform.Inspector
	PodRevisions
}

// Enforced reports whether Freshbind is to act in a namespace, given what the
// pool itself says of its mode.
type Enforced func(ctx context.Context, namespace, pool string) (bool, error)

// Controller keeps the members of pools current, one pool a reconcile, on the leader
// only. It looks at caches and, when they call for an act, decides once more on
// the pool and the template as they are stored. A member needs no read: its
// delete and its patch apply to exactly the version that was judged.
type Controller struct {
	platform Platform
	kinds    platform.Kinds
	visible  platform.Visibility
	// enforced answers from the cache, enforcedNow as it is stored.
	enforced, enforcedNow Enforced

	leads           func() bool
	view            *View
	client          client.Client
	refused         *Refused
	pods            *Pods
	budget          *Budget
	metrics         *Metrics
	events          events.EventRecorder
	clock           clock.PassiveClock
	formerScheduler string

	mu      sync.Mutex
	records map[types.NamespacedName]*poolRecord
	// ready are the members of pools that replace some, which became ready lately.
	ready map[types.UID]sets.Set[types.UID]

	handover handover
}

// poolRecord is what one leader knows of a pool beyond what is stored.
type poolRecord struct {
	pool types.UID
	// proven: the cache showed every member that a consistent list did.
	proven bool
	// unproven is how long to wait before the next list, unclear that a list before
	// will not do: nobody knows whether a member was deleted.
	unproven wait
	unclear  bool
	// onDrainingNode are the members on leaving nodes that were noted as such.
	onDrainingNode map[types.UID]bool
	// leaving are the members whose delete was asked for and not seen yet.
	leaving map[types.UID]bool
	// hidden is since when members are seen to be hidden, where they have to be for a
	// while before they go.
	hidden map[types.UID]time.Time
	// unseen: not every delete was seen when the last plan was carried out.
	unseen bool
	// doubted are the members that were judged with their whole Pods, by what was in
	// doubt.
	doubted map[types.UID]string
	rollout freshness.Rollout
	// lastSeen are the members as they were last planned, readied those that have
	// become ready since, and gone some that were counted before; of a pool that
	// replaces none there are none.
	lastSeen map[types.UID]memberStatus
	readied  sets.Set[types.UID]
	gone     *lru.Cache
	// failures are of members that could not be written to, unstamped of those whose Pods
	// could not be stamped.
	failures, unstamped backoffs
	// version is that of the newest pool that was planned on: the cache may show an
	// older one than was read.
	version string
	// template is the one that was last seen, changed when it was seen to change.
	template templateVersion
	changed  time.Time
	// offered is how often members were offered again for that change.
	offered int
	// written is what was last written onto the pool, and when.
	written   map[string]string
	writtenAt time.Time
	// swept is what the bare Pods were last judged for; bare: there were some.
	swept sweptAt
	bare  bool
	// read: what the pool says of its rollout was read back.
	read bool
	// inspection is what members were last compared with.
	inspection *platform.Inspection
	// roster is what they were found to be; nil for nothing. rest is how the pool was
	// found when nothing was to be done.
	roster *roster
	rest   rest
}

// templateVersion is one version of a template's spec; uid is "" when only the
// generation was kept.
type templateVersion struct {
	uid        types.UID
	generation int64
}

// budgetRecheck is how long a pool that waits for others is left alone when the budget
// does not wake it, which it does as soon as there is something.
const budgetRecheck = 30 * time.Second

// settling is how long the caches of others are given to show what Freshbind
// has seen already.
const settling = 200 * time.Millisecond

// maxSettling bounds how long a pool whose members could not be proven waits for
// the next list.
const maxSettling = 30 * time.Second

func (p *Controller) record(key types.NamespacedName, pool types.UID) *poolRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.records[key]
	if m != nil && m.pool != pool {
		// It was deleted, and created again before anybody looked.
		p.budget.Forget(m.pool)
		delete(p.ready, m.pool)
	}
	if m == nil || m.pool != pool {
		m = &poolRecord{pool: pool, leaving: map[types.UID]bool{}, doubted: map[types.UID]string{}, failures: backoffs{}, unstamped: backoffs{}, gone: lru.New(goneKept)}
		p.records[key] = m
	}
	return m
}

func (p *Controller) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if was := p.handover.forget(key); was != "" {
		p.budget.Forget(was)
	}
	if m := p.records[key]; m != nil {
		p.budget.Forget(m.pool)
		delete(p.records, key)
		delete(p.ready, m.pool)
		p.metrics.forget(key)
	}
}

// Reconcile brings one pool a step further.
func (p *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if err := p.takeOver(ctx); err != nil {
		return reconcile.Result{}, err
	}
	p.view.listings.trim(p.clock.Now())
	pool, err := p.view.Pool(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pool == nil || pool.GetDeletionTimestamp() != nil {
		p.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	act, err := p.enforced(ctx, req.Namespace, pool.GetAnnotations()[settings.EnforcementKey])
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("finding the mode of pool %s: %w", req, err)
	}
	if !act {
		p.forget(req.NamespacedName)
		return p.loosen(ctx, pool)
	}
	m := p.record(req.NamespacedName, pool.GetUID())
	if !m.proven {
		if err := p.prove(ctx, m, pool); err != nil {
			p.unplanned(m, pool)
			return reconcile.Result{}, err
		}
		if !m.proven {
			p.unplanned(m, pool)
			return reconcile.Result{RequeueAfter: m.unproven.next(settling, maxSettling)}, nil
		}
	}
	return p.step(ctx, m, pool)
}

// unplanned has a pool that cannot be planned hold up no other: it loses its turn, and
// what it replaces counts for as long as it would with a plan.
func (p *Controller) unplanned(m *poolRecord, pool *unstructured.Unstructured) {
	p.loadRollout(m, pool)
	p.budget.Settle(m.pool, m.account(m.rollout.Stalled(settings.Pool(pool.GetAnnotations()).Deadline(), p.clock.Now())), false)
}

// prove finds out whether the cache shows what was done before.
func (p *Controller) prove(ctx context.Context, m *poolRecord, pool *unstructured.Unstructured) (err error) {
	if m.unclear {
		m.proven, err = p.view.Proven(ctx, pool)
	} else {
		m.proven, err = p.view.ProvenOnce(ctx, pool, p.clock)
	}
	m.unclear = m.unclear && !m.proven
	return err
}

// step plans on what the caches show and, when that calls for an act, on what
// is stored.
func (p *Controller) step(ctx context.Context, m *poolRecord, pool *unstructured.Unstructured) (result reconcile.Result, err error) {
	s, err := p.known(ctx, m, pool)
	if err != nil {
		p.unplanned(m, pool)
		return reconcile.Result{}, err
	}
	if s == nil {
		// Without a template nothing is rolled out, and nobody waits for it.
		p.budget.Forget(m.pool)
		return reconcile.Result{}, nil
	}
	if nodes, err := p.view.nodes(ctx); err == nil && len(nodes.leaving) == 0 && m.rests(s) {
		return reconcile.Result{RequeueAfter: m.rest.wait(s.Now)}, nil
	}
	plan, err := p.plan(ctx, m, s)
	if err != nil {
		p.unplanned(m, pool)
		return reconcile.Result{}, err
	}
	already, key := plan.Rollout.Replacing.Deleted(), client.ObjectKeyFromObject(pool)
	granted := p.budget.Take(key, m.pool, Account{already, plan.Stalled}, Grant{Replacements: plan.Wanted, Deletes: plan.Waiting})
	defer func() {
		p.budget.Return(granted.Deletes - s.deletes())
		p.budget.Settle(m.pool, m.account(plan.Stalled), err == nil && s != nil)
	}()
	// What only waits for other pools costs no read.
	if granted.Deletes+len(plan.Hide)+len(plan.Show) > 0 {
		if s, err = p.inForce(ctx, m, pool); err != nil || s == nil {
			return reconcile.Result{}, err
		}
		s.Granted, s.Deletes = already+granted.Replacements, granted.Deletes
		if plan, err = p.plan(ctx, m, s); err != nil {
			return reconcile.Result{}, err
		}
	}
	return p.apply(ctx, m, s, plan)
}

// known judges by what the caches show, unless they show an older pool or template than
// the last plan was made on: by an older template a member counts as a replacement that
// is to be replaced itself. It returns nil when there is no template.
func (p *Controller) known(ctx context.Context, m *poolRecord, pool *unstructured.Unstructured) (*poolState, error) {
	p.loadRollout(m, pool)
	if m.version != "" && older(pool.GetResourceVersion(), m.version) {
		return p.inForce(ctx, m, pool)
	}
	template, err := p.view.Template(ctx, pool)
	if err != nil {
		return nil, err
	}
	if template != nil && m.template.isAfter(versionOf(template)) {
		return p.inForce(ctx, m, pool)
	}
	return p.look(ctx, m, pool, template)
}

// plan makes the plan, and has claims given stale members only when it is certain
// that there is no fresh one: a cache that shows none may be old.
func (p *Controller) plan(ctx context.Context, m *poolRecord, s *poolState) (freshness.Plan, error) {
	if err := p.compare(ctx, m, s); err != nil {
		return freshness.Plan{}, err
	}
	plan := freshness.MakePlan(s.PoolState)
	if plan.Admit != freshness.AdmitAny || settings.Pool(s.pool.GetAnnotations()).AdmitsAny() {
		return plan, nil
	}
	proven, err := p.view.Proven(ctx, s.pool)
	if err != nil || proven {
		return plan, err
	}
	s.Rollout.Fresh = s.Now
	return freshness.MakePlan(s.PoolState), nil
}

// inForce judges by the pool, the template and the mode as they are stored; nil
// when this pool is no more, or nothing is enforced for it.
func (p *Controller) inForce(ctx context.Context, m *poolRecord, cached *unstructured.Unstructured) (*poolState, error) {
	namespace := cached.GetNamespace()
	pool, err := p.platform.Get(ctx, p.kinds.Pool.GroupResource(), namespace, cached.GetName())
	if err != nil || pool == nil || pool.GetUID() != cached.GetUID() || pool.GetDeletionTimestamp() != nil {
		return nil, err
	}
	if act, err := p.actsOn(ctx, pool); err != nil || !act {
		return nil, err
	}
	is, kind := p.view.objects.Pool(pool), p.kinds.Template
	if is.TemplateKind != "" {
		kind = p.kinds.SharedTemplate
	}
	template, err := p.platform.Get(ctx, kind.GroupResource(), namespace, is.Template)
	if err != nil {
		return nil, err
	}
	s, err := p.look(ctx, m, pool, template)
	if s != nil {
		s.live = true
	}
	return s, err
}

// mayWrite reports whether the mode, read live once a plan, lets anything be
// written.
func (p *Controller) mayWrite(ctx context.Context, s *poolState) (bool, error) {
	if s.live {
		return true, nil
	}
	act, err := p.actsOn(ctx, s.pool)
	s.live, s.withheld = act, !act
	return act, err
}

// actsOn reports whether Freshbind is to act on a pool, by the mode as it is now:
// a cache that is late must not keep the emergency brake from working.
func (p *Controller) actsOn(ctx context.Context, pool *unstructured.Unstructured) (bool, error) {
	act, err := p.enforcedNow(ctx, pool.GetNamespace(), pool.GetAnnotations()[settings.EnforcementKey])
	if err != nil {
		return false, fmt.Errorf("reading the mode of pool %s/%s: %w", pool.GetNamespace(), pool.GetName(), err)
	}
	return act, nil
}

// apply does what the plan says, and writes its outcome onto the pool.
func (p *Controller) apply(ctx context.Context, m *poolRecord, s *poolState, plan freshness.Plan) (reconcile.Result, error) {
	if err := p.sweep(ctx, m, s); err != nil {
		return reconcile.Result{}, err
	}
	logf.FromContext(ctx).V(2).Info("Planned pool", "strategy", s.Strategy, "state", plan.Rollout.State,
		"delete", len(plan.Delete), "hide", len(plan.Hide), "show", len(plan.Show), "updated", plan.Counts.Updated)
	p.metrics.observe(client.ObjectKeyFromObject(s.pool), plan)
	p.planned(m, s, plan)
	// What is about to be deleted and what claims may be given is said before.
	again, err := p.publish(ctx, m, s, plan)
	if err != nil {
		m.rollout.Replacing = plan.Replacing(nil)
	} else {
		err = p.write(ctx, m, s, plan)
	}
	if err != nil {
		err = fmt.Errorf("keeping pool %s/%s current: %w", s.pool.GetNamespace(), s.pool.GetName(), err)
	} else {
		err = p.suspect(ctx, m, s)
	}
	// Claims wait for the labels: a member that cannot be deleted holds up no others.
	next, stampErr := p.stamp(ctx, m, s)
	if stampErr != nil {
		stampErr = fmt.Errorf("stamping members of pool %s/%s: %w", s.pool.GetNamespace(), s.pool.GetName(), stampErr)
	}
	if err := errors.Join(err, stampErr); err != nil {
		return reconcile.Result{}, err
	}
	if plan.Waiting > 0 {
		again = sooner(again, budgetRecheck)
	}
	again = sooner(sooner(again, next), m.failures.next(s.Now))
	again = sooner(again, settings.Pool(s.pool.GetAnnotations()).RestartsIn(s.Now))
	again = sooner(sooner(again, plan.Again), p.offerAgain(m, s))
	m.settle(s, plan, again)
	return reconcile.Result{RequeueAfter: again}, nil
}

// sooner returns the shorter of two waits. 0 is none, and what should have been
// before now is at once.
func sooner(a, b time.Duration) time.Duration {
	if b < 0 {
		b = time.Millisecond
	}
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
