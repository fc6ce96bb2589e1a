package manager

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/controllers/closing"
	"github.com/freshbind/freshbind/controllers/history"
	"github.com/freshbind/freshbind/controllers/holdings"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/webhooks"
)

// assembly is what runs for one platform while it is served.
type assembly struct {
	*process
	served
	Connected

	mgr    manager.Manager
	stored platform.Stored
	modes  *webhooks.Modes
	reg    prometheus.Registerer
}

// assemble connects platform, webhooks and controllers to the manager.
func (o *process) assemble(mgr manager.Manager, platformServed served, store *members.Cache, reg prometheus.Registerer) error {
	sources, err := o.sources(mgr, platformServed.Guarded, reg)
	if err != nil {
		return err
	}
	if store != nil {
		sources.CachedNode = nodeOf(store)
	}
	a := &assembly{
		process: o, served: platformServed, Connected: platformServed.Connect(sources), mgr: mgr, reg: reg,
		stored: sources.Stored,
		modes:  &webhooks.Modes{Live: sources.NamespaceLabels, Cached: sources.CachedNamespaces, Defaults: o.Defaults},
	}
	// Informers that the handlers read from have to be filled before the first
	// request, not by it.
	for _, obj := range []client.Object{&corev1.Namespace{}, &appsv1.ControllerRevision{}} {
		if _, err := mgr.GetCache().GetInformer(context.Background(), obj); err != nil {
			return fmt.Errorf("watching %T: %w", obj, err)
		}
	}
	if a.Admission.Own.Template != "" {
		err = history.Setup(mgr, history.Options{
			Templates: a.Templates, SharedTemplates: a.SharedTemplates, Pools: a.Pools, Members: a.Sandboxes, Platform: a.Objects, Limit: o.RevisionLimit, Digests: o.RevisionDigests,
			Enforced: a.modes.Acts,
		})
		if err != nil {
			return err
		}
	}
	if err := o.anchor(mgr, a.Admission); err != nil {
		return err
	}
	if a.Keep != nil {
		return a.keep(store)
	}
	a.modes.Pools = listedPools(mgr.GetCache(), a.Pools)
	r, err := newReporter(mgr, a.Served)
	if err != nil {
		return err
	}
	if err := closing.Setup(mgr, mgr.GetCache(), a.Pools, webhooks.ConfigurationOf(a.Admission)); err != nil {
		return err
	}
	a.register(hints{Observer: r}, webhooks.NewRecentBinds(nil))
	return a.registerAdvice(a.modes.Pools)
}

// keep runs the controllers that keep pools current beside the guard.
func (a *assembly) keep(store *members.Cache) error {
	held, err := a.keepClaims()
	if err != nil {
		return err
	}
	obs, err := newObserver(a, store, held)
	if err != nil {
		return err
	}
	a.modes.Pools = obs.dispositions.Pools
	a.register(obs.hints(), webhooks.NewRecentBinds(held))
	if err := registerScheduler(a.mgr, a.Scheduling, a.Admission, a.Kept, a.leads, obs.dispositions, a.reg); err != nil {
		return err
	}
	if err := closing.Setup(a.mgr, obs.dispositions.Caches(), a.Pools, webhooks.ConfigurationOf(a.Admission)); err != nil {
		return err
	}
	if a.Keep.Claims != nil {
		if err := a.addSelfTest(); err != nil {
			return err
		}
	}
	return a.registerAdvice(obs.dispositions.Pools)
}

// keepClaims keeps the books of who has what, where claims are objects. It returns which
// members a cache shows that a claim has; nil where nobody keeps books.
func (a *assembly) keepClaims() (held func(ctx context.Context, namespace, claimUID string) []string, err error) {
	p, claims := a.Keep.Platform, a.Keep.Claims
	if claims == nil {
		return nil, nil
	}
	cached := a.mgr.GetCache()
	err = holdings.Setup(a.mgr, a.Sandboxes, a.Claims, p, a.modes.Acts, askedByPools(cached, a.Pools, claims.EnforcementFor))
	return holdings.Index(cached, a.Sandboxes), err
}

// nodeOf looks up the node that a Pod is on.
func nodeOf(store *members.Cache) func(namespace, pod string) string {
	return func(namespace, pod string) string {
		if p := store.Pod(types.NamespacedName{Namespace: namespace, Name: pod}); p != nil {
			return p.Node()
		}
		return ""
	}
}

// listedPools lists the pools that a cache shows, which watches them in any case.
func listedPools(cached cache.Cache, kind schema.GroupVersionKind) PoolsIn {
	return func(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := cached.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing the pools of namespace %s: %w", namespace, err)
		}
		out := make([]*unstructured.Unstructured, len(list.Items))
		for i := range list.Items {
			out[i] = &list.Items[i]
		}
		return out, nil
	}
}

// cached is what the cache of members looks at.
func (s served) cached() members.Source {
	return members.Source{
		Reducer: platform.NewReducer(s.Kept), Kind: s.Sandboxes, Resource: s.Kept.Kinds().Member.Resource, Pods: s.Kept.MemberPods().String(),
	}
}

// sources returns where a platform reads.
func (o *process) sources(mgr manager.Manager, g *Guarded, reg prometheus.Registerer) (Sources, error) {
	getter, err := liveread.NewDynamicGetter(mgr.GetConfig())
	if err != nil {
		return Sources{}, fmt.Errorf("creating the live reader: %w", err)
	}
	kinds := g.Objects.Kinds()
	resolver, err := liveread.NewResolver(mgr.GetConfig(), kinds.Versions...)
	if err != nil {
		return Sources{}, fmt.Errorf("creating the resolver of API versions: %w", err)
	}
	byUID, err := liveread.NewUIDGetter(mgr.GetConfig())
	if err != nil {
		return Sources{}, fmt.Errorf("creating the reader by UID: %w", err)
	}
	// Those that verdicts read are a closed set of labels.
	resources := append(kinds.Resources(), "namespaces", "nodes", "pods")
	return Sources{
		ByUID: liveread.NewReader(byUID, nil, liveread.OnUnserved(resolver.Refresh)),
		Stored: platform.Stored{
			Reader: liveread.NewReader(getter, liveread.NewMetrics(reg, resources...),
				liveread.OnUnserved(func(gvr schema.GroupVersionResource) {
					resolver.Refresh(gvr)
					o.doubt()
				})),
			Resolver: resolver,
		},
		History: history.NewReader(mgr.GetClient(), g.Objects),
		API:     mgr.GetAPIReader(), Cache: mgr.GetCache(), CachedNamespaces: platform.CachedNamespaceLabels(mgr.GetClient()),
		Defaults:      o.Defaults,
		SchedulerName: o.Scheduling.SchedulerName,
		RepairOff:     !o.Repair,
		Turns:         o.turns,
	}, nil
}

// registerAdvice serves advice from the metadata of members, which is watched
// in any case.
func (a *assembly) registerAdvice(pools PoolsIn) error {
	if a.Adviser == nil {
		return nil
	}
	sandboxes := &metav1.PartialObjectMetadata{}
	sandboxes.SetGroupVersionKind(a.Sandboxes)
	if _, err := a.mgr.GetCache().GetInformer(context.Background(), sandboxes); err != nil {
		return fmt.Errorf("watching the metadata of sandboxes: %w", err)
	}
	a.mgr.GetWebhookServer().Register(a.Admission.PathPrefix+webhooks.AdviseHook.Path, webhooks.NewReviews(&webhooks.Advise{
		Adviser: a.Adviser(pools), Timeout: webhooks.AdviseHook.HandlerTimeout(),
	}))
	return nil
}

// hints is what guards tell the controllers.
type hints struct {
	webhooks.Observer
	poolSkipped func(namespace, pool string)
	released    func(pod *unstructured.Unstructured)
	// allowed is about claims.
	allowed func(namespace, claim string, uid types.UID)
	// returnRefused is about used Sandboxes.
	returnRefused func(sandbox *unstructured.Unstructured)
}

// register serves the webhooks that judge and stamp, and those that protect.
func (a *assembly) register(to hints, binds *webhooks.RecentBinds) {
	server := a.mgr.GetWebhookServer()
	m := webhooks.NewMetrics(a.reg)
	retries := webhooks.NewRetryLimiter(clock.RealClock{})
	refusals := webhooks.NewRefusalCache(clock.RealClock{})
	existing := webhooks.NewExistingNames(a.stored.Get)
	hooks := append(webhooks.Judged(), webhooks.BirthHook)
	for _, hook := range webhooks.Judged() {
		hooks = append(hooks, hook.Opened())
	}
	for _, hook := range hooks {
		server.Register(a.Admission.PathPrefix+hook.Path, webhooks.NewReviews(&webhooks.Guard{
			Platform: a.Guard, Modes: a.modes, Metrics: m, Observer: to, RecentBinds: binds, Retries: retries, KnownRefusals: refusals, Existing: existing,
			PoolSkipped: to.poolSkipped, Released: to.released, Allowed: to.allowed, ReturnRefused: to.returnRefused,
			Clock: clock.RealClock{}, Turns: a.turns, Timeout: hook.HandlerTimeout(), FailOpen: hook.FailOpen,
		}))
	}
	for _, hook := range []webhooks.Hook{webhooks.StampHook, webhooks.StampBirthHook} {
		server.Register(a.Admission.PathPrefix+hook.Path, webhooks.NewReviews(&webhooks.Stamp{
			Revisions: a.Guard, Modes: a.modes, Timeout: hook.HandlerTimeout(), SchedulerName: a.Scheduling.sendsTo(), KnownRefusals: refusals,
			Existing: existing, Birth: hook.Path == webhooks.StampBirthHook.Path,
		}))
	}
	if a.Keep != nil {
		server.Register(a.Admission.PathPrefix+webhooks.EvictHook.Path, webhooks.NewReviews(&webhooks.Evict{
			Evictions: evictions{a.Keep.Platform}, Modes: a.modes, Timeout: webhooks.EvictHook.HandlerTimeout(),
		}))
	}
	server.Register(a.Admission.PathPrefix+webhooks.RestampPath, webhooks.NewReviews(webhooks.Restamp{Modes: a.modes}))
	for _, of := range []struct {
		hook      webhooks.Hook
		deletions webhooks.Deletions
	}{{webhooks.ProtectHook, a.Deletions}, {webhooks.ProtectPodHook, a.PodDeletions}} {
		if of.deletions == nil {
			continue
		}
		server.Register(a.Admission.PathPrefix+of.hook.Path, webhooks.NewReviews(&webhooks.Protect{
			Deletions: of.deletions, Modes: a.modes, Clock: clock.RealClock{}, Timeout: of.hook.HandlerTimeout(),
		}))
	}
}
