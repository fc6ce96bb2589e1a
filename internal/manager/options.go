package manager

import (
	"time"

	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/scheduler"
	"github.com/freshbind/freshbind/webhooks"
)

// Options are what the manager runs with. They are complete and valid: flags, files
// and their defaults are the command's.
type Options struct {
	WebhookHost string
	WebhookPort int
	// CertDir has tls.crt and tls.key, unless Certificate names a Secret.
	CertDir     string
	Certificate config.Certificate
	// ClientCAFile has the CAs of which whoever asks the webhooks needs a
	// certificate; empty for anybody. ClientNames are the common names it may have.
	ClientCAFile   string
	ClientNames    []string
	HealthAddress  string
	MetricsAddress string
	// MetricsSecure is config.Metrics.Secure.
	MetricsSecure  bool
	ProfileAddress string
	// GracePeriod is how long running requests may take after a stop signal.
	GracePeriod time.Duration
	// ReleasePeriod bounds what a process that stops for good does after that. The chart
	// leaves that much of a Pod's grace period (templates/validate.yaml).
	ReleasePeriod time.Duration

	LeaderElect          bool
	LeaderElectNamespace string
	// Deployment is config.LeaderElection.Deployment.
	Deployment string

	// Defaults hold where nobody says anything; Scope says where policies hold.
	Defaults settings.Defaults
	Scope    webhooks.Scope
	// Repair has stale cold starts rewritten instead of refused.
	Repair          bool
	RevisionLimit   int
	RevisionDigests bool
	// Budget bounds the members in replacement at any moment, over all pools.
	Budget int
	// Namespaces are the only ones that are looked at; all when empty.
	Namespaces []string
	SelfTest   config.SelfTest
	// Scheduling says how members' Pods get to nodes.
	Scheduling Scheduling
	// Traced: calls of webhooks become spans.
	Traced bool
}

// Scheduling says how members' Pods get to nodes.
type Scheduling struct {
	// Mode is None, Extender or SecondScheduler.
	Mode string
	// SchedulerName is the second scheduler's. Outside of that mode members whose
	// Pods have it are replaced.
	SchedulerName string
	Weights       scheduler.Weights
}
