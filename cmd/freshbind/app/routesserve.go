package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/freshbind/freshbind/internal/routefeed"
	"github.com/freshbind/freshbind/internal/routeserver"
	"github.com/freshbind/freshbind/routes"
)

// RoutesServeOptions configure the process that tells gateways where sandboxes
// are.
type RoutesServeOptions struct {
	routesProcess

	Address string
	CertDir string

	// TokenFile and ClientCAFile say who is let in; one of them is required.
	TokenFile    string
	ClientCAFile string
	ClientNames  []string

	MaxAge     time.Duration
	MaxFences  int
	Namespaces []string
}

// NewRoutesServeOptions returns the defaults.
func NewRoutesServeOptions() *RoutesServeOptions {
	return &RoutesServeOptions{
		routesProcess: newRoutesProcess(), Address: ":9543", CertDir: "/var/run/freshbind/routes-tls",
		MaxAge: routes.DefaultMaxAge, MaxFences: routes.DefaultMaxFences,
	}
}

func newRoutesServeCommand() *cobra.Command {
	o := NewRoutesServeOptions()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Tell gateways where sandboxes are",
		Long: "Serve follows Sandboxes and Pods, and answers lookups and the checks of nginx (auth_request), Traefik\n" +
			"(ForwardAuth) and Envoy (ext_authz). It only reads. Every replica has its own view, and answers 503 while it\n" +
			"cannot prove that this view is younger than --max-age.",
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
	o.routesProcess.AddFlags(fs)
	fs.StringVar(&o.Address, "bind-address", o.Address, "Address (host:port) that serves routes over TLS.")
	fs.StringVar(&o.CertDir, "cert-dir", o.CertDir, "Directory with tls.crt and tls.key, read again when they change.")
	fs.StringVar(&o.TokenFile, "token-file", o.TokenFile, "File with accepted bearer tokens, one per line, read again every few seconds.")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile, "File with CAs, PEM, whose client certificates are accepted.")
	fs.StringSliceVar(&o.ClientNames, "client-names", o.ClientNames, "Common or DNS names that such a certificate may have; any if empty.")
	fs.DurationVar(&o.MaxAge, "max-age", o.MaxAge, "How old the view may be for an answer: for that long after its end, a sandbox's address can still be given out.")
	fs.IntVar(&o.MaxFences, "max-fences", o.MaxFences, "How many deleted sandboxes, and Pods, to remember one by one; others need a live read if they seem to be back.")
	fs.StringSliceVar(&o.Namespaces, "namespaces", o.Namespaces, "The only namespaces to look at; all if empty.")
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
	return o.run(ctx, cache.Options{}, o.assemble)
}

// assemble connects the cluster to the table, and the table to the gateways.
func (o *RoutesServeOptions) assemble(mgr manager.Manager) error {
	table := routes.New(routes.Options{MaxAge: o.MaxAge, MaxFences: o.MaxFences, Namespaces: o.Namespaces})
	feed, err := routefeed.New(mgr.GetConfig(), table, routed(), o.Namespaces, routefeed.NewMetrics(metrics.Registry, table))
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
		mgr.AddReadyzCheck("view", func(*http.Request) error {
			if !table.Ready() {
				return errors.New("the view of sandboxes is incomplete, or not proven to be young enough")
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
		pool, err := cert.NewPool(o.ClientCAFile)
		if err != nil {
			return out, fmt.Errorf("--client-ca-file: %w", err)
		}
		out.TLS.ClientCAs, out.TLS.ClientAuth = pool, tls.VerifyClientCertIfGiven
		out.Clients = &routeserver.Clients{Names: o.ClientNames}
	}
	return out, nil
}
