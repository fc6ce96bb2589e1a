package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/freshbind/freshbind/internal/manager"
	"github.com/freshbind/freshbind/internal/tracing"
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
	cfg, err := serverConfig(o.Kubeconfig, o.Context)
	if err != nil {
		return err
	}
	RegisterBuildInfo(metrics.Registry, "manager", Version())
	ctrl.Log.WithName("manager").Info("Starting", "version", Version(), "webhookAddress", o.WebhookAddress,
		"defaultEnforcement", o.enforcement, "defaultRolloutStrategy", o.strategy)
	endTraces, err := tracing.Start(ctrl.LoggerInto(ctx, ctrl.Log), "freshbind", Version())
	if err != nil {
		// Whoever sets these variables for all programs does not mean to stop the guard.
		ctrl.Log.Error(err, "Running without traces")
	}
	if o.Traced = endTraces != nil; o.Traced {
		defer endTraces()
		tracing.Requests(cfg)
	}
	return manager.Run(ctx, cfg, o.Options, guarded(o.kruise)...)
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
