package app

import (
	"context"
	"flag"
	"fmt"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// routesProcess is what the processes about routes have in common. Each of their
// replicas does all of the work.
type routesProcess struct {
	Kubeconfig string
	Context    string

	HealthAddress  string
	MetricsAddress string

	log zap.Options
}

func newRoutesProcess() routesProcess {
	return routesProcess{HealthAddress: ":8081", MetricsAddress: ":8080"}
}

// AddFlags adds the options to fs.
func (o *routesProcess) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of a kubeconfig; empty for the in-cluster configuration or $KUBECONFIG.")
	fs.StringVar(&o.Context, "context", o.Context, "Context of the kubeconfig.")
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", o.HealthAddress, "Address that serves /healthz and /readyz; 0 for none.")
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, "Address that serves /metrics; 0 for none.")
	logFlags := flag.NewFlagSet("log", flag.ContinueOnError)
	o.log.BindFlags(logFlags)
	fs.AddGoFlagSet(logFlags)
}

// run works until ctx ends.
func (o *routesProcess) run(ctx context.Context, kept cache.Options, assemble func(manager.Manager) error) error {
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.log)))
	cfg, err := serverConfig(o.Kubeconfig, o.Context)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: o.MetricsAddress}, HealthProbeBindAddress: o.HealthAddress, Cache: kept,
	})
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	if err := assemble(mgr); err != nil {
		return err
	}
	RegisterBuildInfo(metrics.Registry, "routes", Version())
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}
