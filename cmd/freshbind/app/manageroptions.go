package app

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/manager"
	"github.com/freshbind/freshbind/internal/settings"
)

// ManagerOptions configure the process that serves webhooks and controllers.
type ManagerOptions struct {
	// ConfigFile is read before all else; empty for none. What it says no flag may
	// say, too.
	ConfigFile string
	Kubeconfig string
	Context    string

	WebhookAddress string

	manager.Options

	enforcement, strategy string
	kruise                bool
	// floors, Certificate and most of SelfTest can be said in a file only.
	floors []config.Floor
	log    zap.Options
}

// NewManagerOptions returns the defaults.
func NewManagerOptions() *ManagerOptions {
	c := config.Default()
	return &ManagerOptions{
		WebhookAddress: c.Webhook.BindAddress, enforcement: c.Defaults.Enforcement, strategy: c.Defaults.RolloutStrategy, kruise: c.Platforms.Kruise,
		Options: manager.Options{
			CertDir:              c.Webhook.Certificate.Directory,
			HealthAddress:        c.Health.BindAddress,
			MetricsAddress:       c.Metrics.BindAddress,
			MetricsSecure:        c.Metrics.Secure,
			ProfileAddress:       c.Profiling.BindAddress,
			GracePeriod:          c.GracePeriod.Duration,
			ReleasePeriod:        c.ReleasePeriod.Duration,
			LeaderElect:          c.LeaderElection.Enabled,
			LeaderElectNamespace: c.LeaderElection.Namespace,
			Deployment:           c.LeaderElection.Deployment,
			Repair:               c.Repair,
			RevisionLimit:        c.Revisions.Limit,
			RevisionDigests:      c.Revisions.Digests,
			Budget:               c.ReplacementBudget,
			SelfTest:             c.SelfTest,
			Scheduling:           defaultScheduling(),
		},
	}
}

// AddFlags adds the options to fs.
func (o *ManagerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ConfigFile, "config", o.ConfigFile, "Path of a configuration file ("+config.Kind+", see freshbind config defaults). No flag may repeat a setting of it.")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of a kubeconfig; empty for the in-cluster configuration or $KUBECONFIG.")
	fs.StringVar(&o.Context, "context", o.Context, "Context of the kubeconfig.")
	fs.StringVar(&o.WebhookAddress, "webhook-bind-address", o.WebhookAddress, "Address (host:port) that serves the webhooks over TLS.")
	fs.StringVar(&o.CertDir, "cert-dir", o.CertDir, "Directory with tls.crt and tls.key, read again when they change.")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile,
		"File with CAs, PEM: the webhooks answer only clients with a certificate of these, as the API server can show one; empty to answer everybody.")
	fs.StringSliceVar(&o.ClientNames, "client-names", o.ClientNames, "Common names that such a certificate may have; any if empty.")
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", o.HealthAddress, "Address that serves /healthz and /readyz; 0 for none.")
	fs.StringVar(&o.ProfileAddress, "pprof-bind-address", o.ProfileAddress, "Address of this host only, as 127.0.0.1:6060, that serves /debug/pprof, which shows what is in memory; 0 for none.")
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, "Address that serves /metrics; 0 for none.")
	fs.BoolVar(&o.MetricsSecure, "metrics-secure", o.MetricsSecure,
		"Serve /metrics over TLS, with the webhooks' certificate, and only to clients that present a cluster token and may get /metrics (RBAC nonResourceURLs).")
	fs.DurationVar(&o.GracePeriod, "grace-period", o.GracePeriod, "How long running requests may take after a stop signal.")
	fs.DurationVar(&o.ReleasePeriod, "release-period", o.ReleasePeriod,
		"How long a process that stops for good may take after that to show hidden members, and to delete the admission configuration with its namespace.")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Elect a leader, which runs the controllers; all replicas serve webhooks.")
	fs.StringVar(&o.LeaderElectNamespace, "leader-election-namespace", o.LeaderElectNamespace, "Namespace of the lease; empty for the namespace this runs in.")
	fs.StringVar(&o.Deployment, "deployment", o.Deployment,
		"Deployment that runs this, in the namespace of the lease: a process that stops while it is gone, or has no replicas, shows hidden members again.")
	fs.StringVar(&o.enforcement, "default-enforcement", o.enforcement, "Mode where neither namespace nor pool sets one: audit or enforce.")
	fs.StringVar(&o.strategy, "default-rollout-strategy", o.strategy, "Strategy where the pool sets none: OnReplenish, Recreate or RollingUpdate.")
	fs.BoolVar(&o.Repair, "repair", o.Repair,
		"Rewrite a cold start that was rendered from an older revision to the one in force, in mode enforce; without it, and for pools with the annotation freshbind.dev/repair=false, it is refused.")
	fs.IntVar(&o.RevisionLimit, "revision-history-limit", o.RevisionLimit, "How many revisions of a template to keep, not counting those in use.")
	fs.BoolVar(&o.RevisionDigests, "revision-digests", o.RevisionDigests,
		"Keep digests of a revision's values in mode enforce, too, as everywhere in mode audit: stale members are still named, but a rollout cannot be undone from history.")
	fs.IntVar(&o.Budget, "replacement-budget", o.Budget, "How many members may be in replacement at once, over all pools. After that many deletes, the pace is a fifth of that number per second.")
	fs.BoolVar(&o.kruise, "platform-kruise", o.kruise, "Guard the sandboxes of OpenKruise Agents, too.")
	fs.StringSliceVar(&o.Namespaces, "namespaces", o.Namespaces, "The only namespaces to look at; all if empty.")
	fs.BoolVar(&o.SelfTest.Enabled, "self-test", o.SelfTest.Enabled, "Ask the API server regularly, in dry runs, for what has to be refused.")
	addSchedulingFlags(fs, &o.Scheduling)
	logFlags := flag.NewFlagSet("log", flag.ContinueOnError)
	o.log.BindFlags(logFlags)
	fs.AddGoFlagSet(logFlags)
}

// Complete fills in what follows from the options.
func (o *ManagerOptions) Complete() error {
	host, port, err := net.SplitHostPort(o.WebhookAddress)
	if err != nil {
		return fmt.Errorf("--webhook-bind-address: %w (want host:port)", err)
	}
	// controller-runtime takes 0 for its default.
	if o.WebhookPort, err = strconv.Atoi(port); err != nil || o.WebhookPort < 1 || o.WebhookPort > 65535 {
		return fmt.Errorf("--webhook-bind-address: port %q is not a number from 1 to 65535", port)
	}
	o.WebhookHost = host
	if len(o.Namespaces) > 0 && !slices.Contains(o.Namespaces, o.SelfTest.Namespace) {
		o.SelfTest.Namespace = o.Namespaces[0]
	}
	o.Scope = scopeOf(o.enforcement, o.floors)
	o.Defaults, err = defaultsOf(o.enforcement, o.strategy, o.floors)
	return err
}

// Validate reports the first option that cannot be used.
func (o *ManagerOptions) Validate() error {
	if _, err := settings.ParseMode(o.enforcement); err != nil {
		return fmt.Errorf("--default-enforcement: %w", err)
	}
	if _, err := settings.ParseStrategy(o.strategy); err != nil {
		return fmt.Errorf("--default-rollout-strategy: %w", err)
	}
	if o.RevisionLimit < 1 {
		return fmt.Errorf("--revision-history-limit: %d is too few, keep at least 1", o.RevisionLimit)
	}
	if o.Budget < 1 {
		return fmt.Errorf("--replacement-budget: %d is too few, at least 1 member has to be replaceable at once", o.Budget)
	}
	if err := validateScheduling(o.Scheduling); err != nil {
		return err
	}
	if len(o.ClientNames) > 0 && o.ClientCAFile == "" {
		return fmt.Errorf("--client-names: --client-ca-file is missing, and nobody vouches for a name")
	}
	if !config.IsLocal(o.ProfileAddress) {
		return fmt.Errorf("--pprof-bind-address: %q has to be of this host only, as 127.0.0.1:6060 is, or 0", o.ProfileAddress)
	}
	if o.GracePeriod < 0 {
		return fmt.Errorf("--grace-period: %s is negative", o.GracePeriod)
	}
	if o.ReleasePeriod < time.Second {
		return fmt.Errorf("--release-period: %s is too short, at least 1s", o.ReleasePeriod)
	}
	if o.Certificate.SecretName != "" {
		return nil
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		if _, err := os.Stat(filepath.Join(o.CertDir, name)); err != nil {
			return fmt.Errorf("--cert-dir: %w", err)
		}
	}
	return nil
}
