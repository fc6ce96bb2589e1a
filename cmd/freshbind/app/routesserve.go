package app

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/routefeed"
	"github.com/freshbind/freshbind/internal/routeserver"
	"github.com/freshbind/freshbind/routes"
)

// RoutesServeOptions configure the process that tells gateways where sandboxes
// are.
type RoutesServeOptions struct {
	Kubeconfig string
	Context    string

	Address        string
	CertDir        string
	HealthAddress  string
	MetricsAddress string

	// TokenFile and ClientCAFile say who is let in; one of them is required.
	TokenFile    string
	ClientCAFile string
	ClientNames  []string

	MaxAge     time.Duration
	MaxFences  int
	Namespaces []string

	log zap.Options
}

// NewRoutesServeOptions returns the defaults.
func NewRoutesServeOptions() *RoutesServeOptions {
	return &RoutesServeOptions{
		Address: ":9543", CertDir: "/var/run/freshbind/routes-tls", HealthAddress: ":8081", MetricsAddress: ":8080",
		MaxAge: routes.DefaultMaxAge, MaxFences: routes.DefaultMaxFences,
	}
}

func newRoutesServeCommand() *cobra.Command {
	o := NewRoutesServeOptions()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Tell gateways where sandboxes are",
		Long: "Serve follows Sandboxes and Pods, and answers lookups and the checks of nginx (auth_request), Traefik\n" +
			"(ForwardAuth) and Envoy (ext_authz). It only reads. Every replica has a view of its own, and answers 503 while it\n" +
			"cannot prove that the view is younger than --max-age.",
		Example: "  freshbind routes serve --token-file tokens --cert-dir tls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return &ExitError{Code: exitUsage, Err: err}
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

// AddFlags adds the options to fs.
func (o *RoutesServeOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of a kubeconfig; empty for the in-cluster configuration or $KUBECONFIG.")
	fs.StringVar(&o.Context, "context", o.Context, "Context of the kubeconfig.")
	fs.StringVar(&o.Address, "bind-address", o.Address, "Address (host:port) that serves routes over TLS.")
	fs.StringVar(&o.CertDir, "cert-dir", o.CertDir, "Directory with tls.crt and tls.key, read again when they change.")
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", o.HealthAddress, "Address that serves /healthz and /readyz; 0 for none.")
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, "Address that serves /metrics; 0 for none.")
	fs.StringVar(&o.TokenFile, "token-file", o.TokenFile, "File with the bearer tokens that are accepted, one a line, read again every few seconds.")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile, "File with the CAs, PEM, of which a client certificate is accepted.")
	fs.StringSliceVar(&o.ClientNames, "client-names", o.ClientNames, "Common or DNS names that such a certificate may have; any when empty.")
	fs.DurationVar(&o.MaxAge, "max-age", o.MaxAge, "How old the view may be for an answer: how long after the end of a sandbox its address can still be told.")
	fs.IntVar(&o.MaxFences, "max-fences", o.MaxFences, "How many deleted sandboxes, and Pods, are remembered one by one; others need a live read when they seem to be back.")
	fs.StringSliceVar(&o.Namespaces, "namespaces", o.Namespaces, "The only namespaces to look at; all when empty.")
	logFlags := flag.NewFlagSet("log", flag.ContinueOnError)
	o.log.BindFlags(logFlags)
	fs.AddGoFlagSet(logFlags)
}

// Validate reports the first option that cannot be used.
func (o *RoutesServeOptions) Validate() error {
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return fmt.Errorf("--bind-address: %w (want host:port)", err)
	}
	if o.TokenFile == "" && o.ClientCAFile == "" {
		return errors.New("--token-file, --client-ca-file: one of them is required, or anybody could ask where sandboxes are")
	}
	if len(o.ClientNames) > 0 && o.ClientCAFile == "" {
		return errors.New("--client-names: --client-ca-file is missing, and nobody vouches for a name")
	}
	if o.MaxAge < routefeed.MinAge {
		return fmt.Errorf("--max-age: %s is too short: the API server proves how old a view is every second or two, use %s or more", o.MaxAge, routefeed.MinAge)
	}
	if o.MaxFences < 1 {
		return fmt.Errorf("--max-fences: %d is too few, remember at least 1", o.MaxFences)
	}
	return nil
}

// Run serves until ctx ends.
func (o *RoutesServeOptions) Run(ctx context.Context) error {
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.log)))
	cfg, err := serverConfig(o.Kubeconfig, o.Context)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: o.MetricsAddress}, HealthProbeBindAddress: o.HealthAddress,
	})
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	if err := o.assemble(mgr); err != nil {
		return err
	}
	registerBuildInfo(metrics.Registry, Version())
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("serving routes: %w", err)
	}
	return nil
}

// assemble connects the cluster to the table, and the table to the gateways.
func (o *RoutesServeOptions) assemble(mgr manager.Manager) error {
	table := routes.New(routes.Options{MaxAge: o.MaxAge, MaxFences: o.MaxFences, Namespaces: o.Namespaces})
	feed, err := routefeed.New(mgr.GetConfig(), table, routefeed.Platform{
		Sandboxes: agentsandbox.Sandboxes, Versions: agentsandbox.Versions, PodSelector: agentsandbox.PodSandboxLabel,
		SandboxOf: agentsandbox.RouteOfSandbox, PodOf: agentsandbox.RouteOfPod,
	}, o.Namespaces, routefeed.NewMetrics(metrics.Registry, table))
	if err != nil {
		return err
	}
	certificate, err := certwatcher.New(filepath.Join(o.CertDir, "tls.crt"), filepath.Join(o.CertDir, "tls.key"))
	if err != nil {
		return fmt.Errorf("--cert-dir: %w", err)
	}
	options, err := o.serverOptions(certificate)
	if err != nil {
		return err
	}
	server, err := routeserver.New(table, options, routeserver.NewMetrics(metrics.Registry))
	if err != nil {
		return err
	}
	return errors.Join(
		mgr.Add(feed), mgr.Add(certificate), mgr.Add(server),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("view", func(*http.Request) error {
			if !table.Ready() {
				return errors.New("the view of sandboxes is not complete, or not proven to be young enough")
			}
			return nil
		}),
	)
}

// serverOptions say who is let in.
func (o *RoutesServeOptions) serverOptions(certificate *certwatcher.CertWatcher) (routeserver.Options, error) {
	out := routeserver.Options{
		Address: o.Address,
		TLS:     &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.GetCertificate},
	}
	if o.TokenFile != "" {
		tokens, err := routeserver.ReadTokens(o.TokenFile)
		if err != nil {
			return out, fmt.Errorf("--token-file: %w", err)
		}
		out.Tokens = tokens
	}
	if o.ClientCAFile != "" {
		pool, err := clientCAs(o.ClientCAFile)
		if err != nil {
			return out, fmt.Errorf("--client-ca-file: %w", err)
		}
		out.TLS.ClientCAs, out.TLS.ClientAuth = pool, tls.VerifyClientCertIfGiven
		out.Clients = &routeserver.Clients{Names: o.ClientNames}
	}
	return out, nil
}
