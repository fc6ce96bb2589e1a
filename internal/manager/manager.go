// Package manager runs the webhooks and the controllers: the servers all the time, the
// rest for as long as the API server serves a warm-pool system.
package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/servingcert"
)

// process is one manager while it runs.
type process struct {
	Options

	// certificates is nil when the certificate is read from files.
	certificates *servingcert.Source
	// admissions are what the API server may be told of, of all platforms.
	admissions []platform.Admission
	// turns shares CPU between namespaces.
	turns *fair.Turns
	// leads reports whether this process is the leader for certain, for all platforms.
	leads func() bool
	// doubt is called when something may be served no more.
	doubt func()
	// history is nil where nobody leads.
	history *storeHistory
}

func newProcess(o Options) *process {
	return &process{
		Options: o, turns: newTurns(runtime.GOMAXPROCS(0)), leads: func() bool { return true }, doubt: func() {},
	}
}

// Run serves until ctx ends. It guards each of these platforms for as long as the API
// server serves it. Where two answer on one path, the first of them does.
func Run(ctx context.Context, cfg *rest.Config, o Options, platforms ...*Guarded) error {
	p := newProcess(o)
	for _, g := range platforms {
		p.admissions = append(p.admissions, g.Admission)
	}
	mgr, err := p.newManager(cfg)
	if err != nil {
		return err
	}
	parts, err := p.newPlatformParts(mgr, platforms)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := mgr.Add(part); err != nil {
			return fmt.Errorf("adding the guard of %s: %w", part.name, err)
		}
	}
	if err := p.addHealth(mgr, parts); err != nil {
		return err
	}
	return p.serve(ctx, cfg, mgr, platforms)
}

// serve runs the manager until ctx ends, and leaves then. So it does after an end that was not
// in order, as of a leader that lost its lease meanwhile: nobody starts it again.
func (o *process) serve(ctx context.Context, cfg *rest.Config, mgr manager.Runnable, platforms []*Guarded) error {
	err := mgr.Start(ctx)
	if err != nil {
		err = fmt.Errorf("running the manager: %w", err)
	}
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err := o.leave(cfg, platforms); err != nil {
		// What it was told to do, it has done.
		ctrl.Log.WithName("leave").Error(err, "Hidden members or the admission configuration may stay behind: kubectl freshbind release -A --stop NAMESPACE/DEPLOYMENT undoes both")
	}
	return err
}

// newManager returns what runs all the time: the servers.
func (o *process) newManager(cfg *rest.Config) (manager.Manager, error) {
	var err error
	server := webhook.Options{Host: o.WebhookHost, Port: o.WebhookPort, CertDir: o.CertDir}
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
	options := ctrl.Options{
		Metrics:                 o.metricsServer(),
		HealthProbeBindAddress:  o.HealthAddress,
		PprofBindAddress:        o.ProfileAddress,
		WebhookServer:           webhook.NewServer(server),
		GracefulShutdownTimeout: &o.GracePeriod,
	}
	if err := o.elect(cfg, &options); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if o.history != nil {
		if err := mgr.Add(o.history); err != nil {
			return nil, fmt.Errorf("adding what notices a restored etcd: %w", err)
		}
	}
	return mgr, nil
}

// metricsServer asks the API server who reads metrics and whether they may, when
// that is wanted. Its answers are kept: 1 minute for tokens, 5 minutes for rights.
func (o *process) metricsServer() metricsserver.Options {
	out := metricsserver.Options{BindAddress: o.MetricsAddress, SecureServing: o.MetricsSecure}
	if !o.MetricsSecure {
		return out
	}
	out.FilterProvider = filters.WithAuthenticationAndAuthorization
	out.CertDir = o.CertDir
	if o.certificates != nil {
		out.CertDir = ""
		out.TLSOpts = append(out.TLSOpts, func(c *tls.Config) { c.GetCertificate = o.certificates.GetCertificate })
	}
	return out
}

// certificateSource is nil when the certificate is read from files.
func (o *process) certificateSource(cfg *rest.Config) (*servingcert.Source, error) {
	if o.Certificate.SecretName == "" {
		return nil, nil
	}
	secret, err := o.certificateSecret()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating the client that reads the serving certificate: %w", err)
	}
	return servingcert.New(client, secret, metrics.Registry, clock.RealClock{}), nil
}

// addHealth: alive is answering at all, ready is caches synced and webhooks
// served. Liveness never depends on certificates.
func (o *process) addHealth(mgr manager.Manager, parts platformParts) error {
	var certificate error
	if o.certificates != nil {
		certificate = errors.Join(o.generate(mgr), mgr.Add(o.certificates), mgr.AddReadyzCheck("certificate", o.certificates.Ready))
	}
	return errors.Join(
		certificate,
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", parts.check),
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
