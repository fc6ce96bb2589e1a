package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/freshbind/freshbind/controllers/history"
)

func newManagerCommand() *cobra.Command {
	o := NewManagerOptions()
	cmd := &cobra.Command{
		Use:   "manager",
		Short: "Serve the webhooks and run the controllers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(o.Complete(), o.Validate()); err != nil {
				return &ExitError{Code: exitUsage, Err: err}
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

// Run serves until ctx ends.
func (o *ManagerOptions) Run(ctx context.Context) error {
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.log)))
	cfg, err := o.restConfig()
	if err != nil {
		return err
	}
	mgr, err := o.newManager(cfg)
	if err != nil {
		return err
	}
	if err := o.assemble(mgr); err != nil {
		return err
	}
	if err := addHealth(mgr); err != nil {
		return err
	}
	ctrl.Log.WithName("manager").Info("Starting", "version", Version(), "webhookAddress", o.WebhookAddress,
		"defaultEnforcement", o.Enforcement, "defaultRolloutStrategy", o.Strategy)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

func (o *ManagerOptions) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the client configuration: %w", err)
	}
	// A read made inside of an admission call must not queue behind the calls
	// that wait for it; the API server's priority and fairness does the limiting.
	cfg.QPS = -1
	cfg.UserAgent = "freshbind/" + Version()
	return cfg, nil
}

func (o *ManagerOptions) newManager(cfg *rest.Config) (manager.Manager, error) {
	recorded, err := labels.NewRequirement(history.TemplateUIDLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting recorded revisions: %w", err)
	}
	options := ctrl.Options{
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			// Every StatefulSet and DaemonSet of the cluster has some, too.
			&appsv1.ControllerRevision{}: {Label: labels.NewSelector().Add(*recorded)},
		}},
		Metrics:                 metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:  o.HealthAddress,
		WebhookServer:           webhook.NewServer(webhook.Options{Host: o.webhookHost, Port: o.webhookPort, CertDir: o.CertDir}),
		GracefulShutdownTimeout: &o.GracePeriod,
	}
	if o.LeaderElect {
		l, err := newLease(cfg, o.LeaderElectNamespace)
		if err != nil {
			return nil, err
		}
		o.leads = l.held
		options.LeaderElection, options.LeaderElectionReleaseOnCancel = true, true
		options.LeaderElectionResourceLockInterface = l
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = ptr.To(leaseDuration), ptr.To(renewDeadline), ptr.To(retryPeriod)
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	return mgr, nil
}

// synced turns true once the caches that the handlers read are filled.
type synced struct {
	cache cache.Cache
	done  atomic.Bool
}

func (s *synced) Start(ctx context.Context) error {
	s.done.Store(s.cache.WaitForCacheSync(ctx))
	<-ctx.Done()
	return nil
}

// NeedLeaderElection is false: every replica serves.
func (*synced) NeedLeaderElection() bool { return false }

func (s *synced) check(*http.Request) error {
	if !s.done.Load() {
		return errors.New("caches are not synced yet")
	}
	return nil
}

// addHealth: alive is answering at all, ready is caches synced and webhooks
// served. Liveness never depends on certificates.
func addHealth(mgr manager.Manager) error {
	s := &synced{cache: mgr.GetCache()}
	return errors.Join(
		mgr.Add(s),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", s.check),
		mgr.AddReadyzCheck("webhooks", func(r *http.Request) error { return mgr.GetWebhookServer().StartedChecker()(r) }),
	)
}

// serving blocks until the webhooks are served.
func serving(mgr manager.Manager) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		if err != nil {
			return fmt.Errorf("building probe: %w", err)
		}
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for mgr.GetWebhookServer().StartedChecker()(req) != nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		}
		return nil
	}
}
