package config

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a file has to say that it is.
const (
	APIVersion = "config.freshbind.dev/v1alpha1"
	Kind       = "FreshbindConfiguration"
)

// Configuration is what a file holds. What it leaves out is as in Default.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	Defaults Defaults `json:"defaults"`
	// Floors are what tenants cannot go below. Of several that select one
	// namespace the strictest counts.
	Floors []Floor `json:"floors"`
	// Repair has stale cold starts rewritten instead of refused.
	Repair    bool      `json:"repair"`
	Revisions Revisions `json:"revisions"`
	// ReplacementBudget bounds the members in replacement at any moment, over all
	// pools, and sets the pace at which they are deleted.
	ReplacementBudget int `json:"replacementBudget"`
	// Namespaces are the only ones that are looked at; all when empty.
	Namespaces     []string       `json:"namespaces"`
	LeaderElection LeaderElection `json:"leaderElection"`
	Webhook        Webhook        `json:"webhook"`
	Metrics        Metrics        `json:"metrics"`
	Health         Listener       `json:"health"`
	// Profiling serves net/http/pprof, which shows what the program has in memory:
	// only where nobody but administrators reaches it.
	Profiling Listener `json:"profiling"`
	// GracePeriod is how long running requests may take after a stop signal.
	GracePeriod Duration `json:"gracePeriod"`
	// ReleasePeriod is how long a process that stops for good may take after that to
	// show hidden members, and to delete the admission configuration with its namespace.
	ReleasePeriod Duration   `json:"releasePeriod"`
	SelfTest      SelfTest   `json:"selfTest"`
	Scheduling    Scheduling `json:"scheduling"`
	Logging       Logging    `json:"logging"`
	Platforms     Platforms  `json:"platforms"`
}

// Platforms are the warm-pool systems that are guarded besides agent-sandbox, once the
// API server serves them.
type Platforms struct {
	// Kruise is OpenKruise Agents.
	Kruise bool `json:"kruise"`
}

// Defaults hold where neither pool nor namespace says anything.
type Defaults struct {
	// Enforcement is audit or enforce.
	Enforcement string `json:"enforcement"`
	// RolloutStrategy is OnReplenish, RollingUpdate or Recreate.
	RolloutStrategy string `json:"rolloutStrategy"`
}

// Floor is the least that holds in some namespaces, whatever the labels and
// annotations of those and of their pools say.
type Floor struct {
	// NamespaceSelector says which; {} is all of them. It is required.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	// MinimumEnforcement is enforce; empty for none.
	MinimumEnforcement string `json:"minimumEnforcement"`
	// MinimumStrategy is RollingUpdate or Recreate; empty for none. OnReplenish
	// is less strict than RollingUpdate, and that than Recreate.
	MinimumStrategy string `json:"minimumStrategy"`
}

// Revisions say what is kept of the contents that a template has had.
type Revisions struct {
	// Limit is how many are kept, those in use not counted.
	Limit int `json:"limit"`
	// Digests keeps digests of values instead of values.
	Digests bool `json:"digests"`
}

// LeaderElection chooses the replica that runs the controllers.
type LeaderElection struct {
	Enabled bool `json:"enabled"`
	// Namespace is the lease's; empty for the one this runs in.
	Namespace string `json:"namespace"`
	// Deployment runs this, in the same namespace. A process that stops while that is gone, or
	// has no replicas, shows hidden members to claims again; empty for none to ask about.
	Deployment string `json:"deployment"`
}

// Listener is an address that something is served at.
type Listener struct {
	// BindAddress is host:port, or 0 for nothing.
	BindAddress string `json:"bindAddress"`
}

// Metrics says where and to whom metrics are served.
type Metrics struct {
	Listener `json:",inline"`
	// Secure serves them over TLS, with the webhooks' certificate, and only to clients
	// that present a cluster token and may get the nonResourceURL /metrics.
	Secure bool `json:"secure"`
}

// Webhook is how the API server's calls are served. Failure policies are not
// said here: the path that is called says them (webhooks.Hook.Opened).
type Webhook struct {
	// BindAddress is host:port.
	BindAddress string      `json:"bindAddress"`
	Certificate Certificate `json:"certificate"`
	Clients     Clients     `json:"clients"`
}

// Clients are those who may ask the webhooks. Without a CA it is whoever reaches
// them.
type Clients struct {
	// CAFile has the CAs, PEM, of which a client needs a certificate.
	CAFile string `json:"caFile"`
	// Names are the common names that it may have; any when empty.
	Names []string `json:"names"`
}

// Certificate is where the serving certificate comes from: a Secret that is
// read through the API, or a directory.
type Certificate struct {
	// SecretName is the Secret with tls.crt and tls.key.
	SecretName string `json:"secretName"`
	// SecretNamespace is its namespace; empty for the one this runs in.
	SecretNamespace string `json:"secretNamespace"`
	// GenerateFor is the Service for which Freshbind makes the certificate itself, its CA
	// included, and tells the API server of it; empty when somebody else does. The Secret
	// has to be there.
	GenerateFor string `json:"generateFor"`
	// Directory has the files tls.crt and tls.key. It is the default when no
	// Secret is named.
	Directory string `json:"directory"`
}

// SelfTest asks the API server again and again for what Freshbind has to refuse.
type SelfTest struct {
	Enabled  bool     `json:"enabled"`
	Interval Duration `json:"interval"`
	// Namespace is where the request goes, a dry run: one that the webhooks cover.
	// When empty it is the first of Configuration.Namespaces, or default.
	Namespace string `json:"namespace"`
}

// Scheduling is how the scheduler takes part.
type Scheduling struct {
	// Mode is None, Extender or SecondScheduler.
	Mode string `json:"mode"`
	// SchedulerName is the second scheduler's.
	SchedulerName string  `json:"schedulerName"`
	Weights       Weights `json:"weights"`
}

// Weights are those of the parts that a node's score is made of.
type Weights struct {
	Zone  int `json:"zone"`
	Node  int `json:"node"`
	Image int `json:"image"`
}

// Logging says what is logged, and how.
type Logging struct {
	// Level is the verbosity: 0 lifecycle and errors, 2 a line for each decision, 4
	// for each request.
	Level int `json:"level"`
	// Format is json or text.
	Format string `json:"format"`
}

// Duration is written as 30s or 1m30s. One that is not understood is kept, and
// is an error of Validate, which knows its place.
type Duration struct {
	time.Duration
	wrong string
}

// UnmarshalJSON takes a string.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		*d = Duration{wrong: string(data)}
		return nil
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		*d = Duration{wrong: s}
		return nil
	}
	*d = Duration{Duration: parsed}
	return nil
}

// MarshalJSON writes what UnmarshalJSON takes.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }
