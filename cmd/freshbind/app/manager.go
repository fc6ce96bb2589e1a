package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/freshbind/freshbind/internal/servingcert"
)

func newManagerCommand() *cobra.Command {
	o := NewManagerOptions()
	cmd := &cobra.Command{
		Use:   "manager",
		Short: "Serve the webhooks and run the controllers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.readFile(cmd.Flags()); err != nil {
				return &ExitError{Code: exitUsage, Err: err}
			}
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
	part, err := o.newPlatformPart(mgr)
	if err != nil {
		return err
	}
	registerBuildInfo(metrics.Registry, "manager", Version())
	if err := errors.Join(mgr.Add(part), o.addHealth(mgr, part)); err != nil {
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
	return serverConfig(o.Kubeconfig, o.Context)
}

// serverConfig is how processes that serve reach the API server.
func serverConfig(kubeconfig, kubeContext string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: kubeContext}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the client configuration: %w", err)
	}
	// A read made inside of an admission call must not queue behind the calls
	// that wait for it; the API server's priority and fairness does the limiting.
	cfg.QPS = -1
	cfg.UserAgent = "freshbind/" + Version()
	return cfg, nil
}

// newManager returns what runs all the time: the servers.
func (o *ManagerOptions) newManager(cfg *rest.Config) (manager.Manager, error) {
	var err error
	server := webhook.Options{Host: o.webhookHost, Port: o.webhookPort, CertDir: o.CertDir}
	if o.certificates, err = o.certificateSource(cfg); err != nil {
		return nil, err
	}
	if o.certificates != nil {
		server.TLSOpts = append(server.TLSOpts, func(c *tls.Config) { c.GetCertificate = o.certificates.GetCertificate })
	}
	clients, err := o.clientCertificates()
	if err != nil {
		return nil, err
	}
	if clients != nil {
		server.TLSOpts = append(server.TLSOpts, clients)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Metrics:                 metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:  o.HealthAddress,
		PprofBindAddress:        o.ProfileAddress,
		WebhookServer:           webhook.NewServer(server),
		GracefulShutdownTimeout: &o.GracePeriod,
	})
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	return mgr, nil
}

// certificateSource is nil when the certificate is read from files.
func (o *ManagerOptions) certificateSource(cfg *rest.Config) (*servingcert.Source, error) {
	if o.Certificate.SecretName == "" {
		return nil, nil
	}
	secret := types.NamespacedName{Namespace: o.Certificate.SecretNamespace, Name: o.Certificate.SecretName}
	if secret.Namespace == "" {
		var err error
		if secret.Namespace, err = ownNamespace(); errors.Is(err, os.ErrNotExist) {
			return nil, errors.New("webhook.certificate.secretNamespace: required outside of a cluster")
		} else if err != nil {
			return nil, err
		}
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating the client that reads the serving certificate: %w", err)
	}
	return servingcert.New(client, secret, metrics.Registry, clock.RealClock{}), nil
}

// addHealth: alive is answering at all, ready is caches synced and webhooks
// served. Liveness never depends on certificates.
func (o *ManagerOptions) addHealth(mgr manager.Manager, part *platformPart) error {
	var certificate error
	if o.certificates != nil {
		certificate = errors.Join(mgr.Add(o.certificates), mgr.AddReadyzCheck("certificate", o.certificates.Ready))
	}
	return errors.Join(
		certificate,
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", part.check),
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
