package manager

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/webhooks"
)

// newPlatformParts prepares what runs of each platform for as long as it is served, behind
// the servers of mgr.
func (o *process) newPlatformParts(mgr manager.Manager, platforms []*Guarded) ([]*platformPart, error) {
	asks, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("creating client for discovery: %w", err)
	}
	ask := platform.Discovery(asks.ServerResourcesForGroupVersionWithContext)
	table := newHandlerTable(mgr.GetWebhookServer(), o.newEntrance(metrics.Registry), map[string]http.Handler{
		// Namespaces say things to Freshbind wherever it runs.
		webhooks.AdviseHook.Path: webhooks.NewReviews(&webhooks.Advise{
			Adviser: noAdviser{}, Timeout: webhooks.AdviseHook.HandlerTimeout(),
		}),
	})
	var parts []*platformPart
	for i, g := range platforms {
		parts = append(parts, &platformPart{
			find: func(ctx context.Context) (served, bool, error) { return g.find(ctx, ask) },
			name: g.Name, clock: clock.RealClock{},
			log: ctrl.Log.WithName("platforms"), idle: func() { table.exchange(i, nil) },
			run: func(ctx context.Context, k served, installed func()) error {
				return o.runPlatform(ctx, mgr, k, newAssemblyServer(table, i), installed)
			},
		})
	}
	o.doubt = func() {
		for _, part := range parts {
			part.doubt()
		}
	}
	return parts, nil
}

func (o *process) runPlatform(ctx context.Context, servers manager.Manager, k served, t *assemblyServer, installed func()) error {
	mine := &assemblyMetrics{Registerer: prometheus.WrapRegistererWith(prometheus.Labels{"platform": k.Name}, metrics.Registry)}
	defer mine.retire()
	mgr, store, err := o.newPlatformManager(servers, k, t)
	if err != nil {
		return err
	}
	if err := o.assemble(mgr, k, store, mine); err != nil {
		return err
	}
	err = mgr.Add(everyReplica(func(ctx context.Context) error {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			t.serve()
			installed()
		}
		<-ctx.Done()
		return nil
	}))
	if err != nil {
		return fmt.Errorf("adding the start of the webhooks: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running webhooks and controllers: %w", err)
	}
	return nil
}

// everyReplica runs on every replica, not on the leader only.
type everyReplica func(context.Context) error

func (r everyReplica) Start(ctx context.Context) error { return r(ctx) }

func (everyReplica) NeedLeaderElection() bool { return false }

// newPlatformManager returns a manager of what runs behind the servers, and what its cache
// shows of members where that is kept. What only a leader may run starts when the manager
// of the servers is elected.
func (o *process) newPlatformManager(servers manager.Manager, k served, server webhook.Server) (manager.Manager, *members.Cache, error) {
	recorded, err := labels.NewRequirement(settings.TemplateUIDLabel, selection.Exists, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("selecting recorded revisions: %w", err)
	}
	var store *members.Cache
	options := ctrl.Options{
		NewCache: func(cfg *rest.Config, co cache.Options) (cache.Cache, error) {
			base, err := liveread.NewConsistentCache(cfg, co)
			if err != nil {
				return nil, err
			}
			if k.Kept == nil {
				return base, nil
			}
			store, err = members.NewCache(base, cfg, k.cached(), o.cachedNamespaces())
			return store, err
		},
		Cache: cache.Options{
			DefaultNamespaces:        o.cachedNamespaces(),
			DefaultWatchErrorHandler: o.watchFailed,
			ByObject: map[client.Object]cache.ByObject{
				// Every StatefulSet and DaemonSet of the cluster has some, too.
				&appsv1.ControllerRevision{}: {Label: labels.NewSelector().Add(*recorded)},
			},
		},
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		WebhookServer:           server,
		GracefulShutdownTimeout: &o.GracePeriod,
		// The names are those of the assembly before, which has ended.
		Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	}
	mgr, err := ctrl.NewManager(servers.GetConfig(), options)
	if err != nil {
		return nil, nil, fmt.Errorf("creating the manager of controllers: %w", err)
	}
	mgr = &electedManager{Manager: mgr, elected: servers.Elected()}
	if len(o.Namespaces) > 0 {
		return &namespacedManager{Manager: mgr, namespaces: o.Namespaces}, store, nil
	}
	return mgr, store, nil
}

// watchFailed doubts that what could not be listed is served still.
func (o *process) watchFailed(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
	if apierrors.IsNotFound(err) {
		o.doubt()
	}
}

// cachedNamespaces is nil for all.
func (o *process) cachedNamespaces() map[string]cache.Config {
	if len(o.Namespaces) == 0 {
		return nil
	}
	out := map[string]cache.Config{}
	for _, ns := range o.Namespaces {
		out[ns] = cache.Config{}
	}
	return out
}

// noAdviser knows no warm-pool system.
type noAdviser struct{}

func (noAdviser) Inputs(*unstructured.Unstructured) advice.Inputs { return advice.Inputs{} }

func (noAdviser) Predict(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) (advice.Effect, error) {
	return nil, nil
}
