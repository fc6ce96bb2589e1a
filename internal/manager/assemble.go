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
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/freshbind/freshbind/controllers/closing"
	"github.com/freshbind/freshbind/controllers/history"
	"github.com/freshbind/freshbind/controllers/holdings"
	"github.com/freshbind/freshbind/controllers/pools"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/webhooks"
)

// What the manager is built with.
var (
	builtIn  = agentsandbox.Objects{}
	barePods = agentsandbox.BarePods{}
)

const platformName = agentsandbox.Name

// admission is what the API server is told of the platform's writes.
func admission() platform.Admission { return agentsandbox.Admission() }

// livePlatform is one that reads what is stored.
type livePlatform interface {
	platform.Objects
	Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error)
	pools.Inspector
	pools.Snapshots
}

// cachedInspector inspects with the namespaces that a cache shows.
func cachedInspector(p *agentsandbox.Platform, cached platform.NamespaceLabels) pools.Inspector {
	return agentsandbox.CachedInspector{Platform: p, Cached: cached}
}

// liveResources are those that verdicts read, the closed label set of the
// metrics of live reads.
var liveResources = []string{"namespaces", "nodes", "pods", "sandboxes", "sandboxclaims", "sandboxtemplates", "sandboxwarmpools"}

// assemble connects platform, webhooks and controllers to the manager.
func (o *process) assemble(mgr manager.Manager, kinds platform.Served, store *members.Cache, reg prometheus.Registerer) error {
	p, err := o.platform(mgr, reg)
	if err != nil {
		return err
	}
	modes := &webhooks.Modes{Live: p.NamespaceLabels, Cached: platform.CachedNamespaceLabels(mgr.GetClient()), Defaults: o.Defaults}
	// Informers that the handlers read from have to be filled before the first
	// request, not by it.
	for _, obj := range []client.Object{&corev1.Namespace{}, &appsv1.ControllerRevision{}} {
		if _, err := mgr.GetCache().GetInformer(context.Background(), obj); err != nil {
			return fmt.Errorf("watching %T: %w", obj, err)
		}
	}
	err = history.Setup(mgr, history.Options{
		Templates: kinds.Templates, Pools: kinds.Pools, Members: kinds.Sandboxes, Platform: p, Limit: o.RevisionLimit, Digests: o.RevisionDigests,
		Enforced: modes.Acts,
	})
	if err != nil {
		return err
	}
	if err := holdings.Setup(mgr, kinds.Sandboxes, kinds.Claims, p, modes.Acts, askedByPools(mgr.GetCache(), kinds.Pools, p.EnforcementFor)); err != nil {
		return err
	}
	obs, err := newObserver(mgr, p, cachedInspector(p, modes.Cached), modes, kinds, o, store, reg)
	if err != nil {
		return err
	}
	modes.Pools = obs.dispositions.Pools
	register(mgr.GetWebhookServer(), p, modes, obs, webhooks.NewRecentBinds(holdings.Index(mgr.GetCache(), kinds.Sandboxes)), webhooks.NewMetrics(reg), o.Scheduling.sendsTo())
	registerProtection(mgr, p, modes)
	if err := registerScheduler(mgr, o.Scheduling, o.leads, obs.dispositions, reg); err != nil {
		return err
	}
	if err := o.anchor(mgr); err != nil {
		return err
	}
	if err := closing.Setup(mgr, obs.dispositions.Caches(), kinds.Pools); err != nil {
		return err
	}
	if err := o.addSelfTest(mgr, kinds, modes, reg); err != nil {
		return err
	}
	return registerAdvice(mgr, p, kinds, obs.dispositions)
}

// cached is what the cache of members looks at.
func cached(k platform.Served) members.Source {
	return members.Source{
		Reducer: agentsandbox.NewReducer(), Kind: k.Sandboxes, Resource: builtIn.Kinds().Member.Resource, Pods: builtIn.MemberPods().String(),
	}
}

// platform returns agent-sandbox with its live readers.
func (o *process) platform(mgr manager.Manager, reg prometheus.Registerer) (*agentsandbox.Platform, error) {
	getter, err := liveread.NewDynamicGetter(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("creating the live reader: %w", err)
	}
	resolver, err := liveread.NewResolver(mgr.GetConfig(), builtIn.Kinds().Versions...)
	if err != nil {
		return nil, fmt.Errorf("creating the resolver of API versions: %w", err)
	}
	byUID, err := liveread.NewUIDGetter(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("creating the reader by UID: %w", err)
	}
	return &agentsandbox.Platform{
		ByUID: liveread.NewReader(byUID, nil, liveread.OnUnserved(resolver.Refresh)),
		Reader: liveread.NewReader(getter, liveread.NewMetrics(reg, liveResources...),
			liveread.OnUnserved(func(gvr schema.GroupVersionResource) {
				resolver.Refresh(gvr)
				o.doubt()
			})),
		Resolver:      resolver,
		History:       history.NewReader(mgr.GetClient(), builtIn),
		Defaults:      o.Defaults,
		SchedulerName: o.Scheduling.SchedulerName,
		RepairOff:     !o.Repair,
		Turns:         o.turns,
	}, nil
}

func registerProtection(mgr manager.Manager, p *agentsandbox.Platform, modes *webhooks.Modes) {
	for _, of := range []struct {
		hook      webhooks.Hook
		deletions webhooks.Deletions
	}{
		{webhooks.ProtectHook, p},
		{webhooks.ProtectPodHook, &agentsandbox.PodDeletions{Platform: p, API: mgr.GetAPIReader()}},
	} {
		mgr.GetWebhookServer().Register(of.hook.Path, &webhook.Admission{Handler: &webhooks.Protect{
			Deletions: of.deletions, Modes: modes, Clock: clock.RealClock{}, Timeout: of.hook.HandlerTimeout(),
		}})
	}
}

// registerAdvice serves advice from the metadata of Sandboxes, which is watched
// in any case.
func registerAdvice(mgr manager.Manager, p *agentsandbox.Platform, k platform.Served, dispositions *pools.Dispositions) error {
	sandboxes := &metav1.PartialObjectMetadata{}
	sandboxes.SetGroupVersionKind(k.Sandboxes)
	if _, err := mgr.GetCache().GetInformer(context.Background(), sandboxes); err != nil {
		return fmt.Errorf("watching the metadata of sandboxes: %w", err)
	}
	mgr.GetWebhookServer().Register(webhooks.AdviseHook.Path, &webhook.Admission{Handler: &webhooks.Advise{
		Adviser: &agentsandbox.Adviser{
			Platform: p,
			Lister:   &agentsandbox.Lister{Cache: mgr.GetCache(), API: mgr.GetAPIReader(), Resolver: p.Resolver, Pools: dispositions.Pools},
		},
		Timeout: webhooks.AdviseHook.HandlerTimeout(),
	}})
	return nil
}

func register(server webhook.Server, p *agentsandbox.Platform, modes *webhooks.Modes, obs observer, binds *webhooks.RecentBinds, m *webhooks.Metrics, sendTo string) {
	retries := webhooks.NewRetryLimiter(clock.RealClock{})
	refusals := webhooks.NewRefusalCache(clock.RealClock{})
	hooks := append(webhooks.Judged(), webhooks.BirthHook)
	for _, hook := range webhooks.Judged() {
		hooks = append(hooks, hook.Opened())
	}
	for _, hook := range hooks {
		server.Register(hook.Path, &webhook.Admission{Handler: &webhooks.Guard{
			PlatformName: platformName, Platform: p, Modes: modes, Metrics: m, Observer: obs, RecentBinds: binds, Retries: retries, KnownRefusals: refusals, PoolSkipped: obs.reofferer.Note, Released: obs.pods.NoteReleased,
			Clock: clock.RealClock{}, Turns: p.Turns, Timeout: hook.HandlerTimeout(), FailOpen: hook.FailOpen,
		}})
	}
	for _, hook := range []webhooks.Hook{webhooks.StampHook, webhooks.StampBirthHook} {
		server.Register(hook.Path, &webhook.Admission{Handler: &webhooks.Stamp{
			Revisions: p, Modes: modes, Timeout: hook.HandlerTimeout(), SchedulerName: sendTo, KnownRefusals: refusals,
			Birth: hook.Path == webhooks.StampBirthHook.Path,
		}})
	}
	server.Register(webhooks.RestampPath, &webhook.Admission{Handler: webhooks.Restamp{Modes: modes}})
}
