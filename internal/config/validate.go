package config

import (
	"net"
	"slices"
	"strconv"
	"time"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

var (
	enforcements    = []string{string(settings.Audit), string(settings.Enforce)}
	strategies      = []freshness.Strategy{freshness.OnReplenish, freshness.RollingUpdate, freshness.Recreate}
	schedulingModes = []string{SchedulingNone, SchedulingExtender, SchedulingSecond}
	formats         = []string{JSON, Text}
)

const (
	// minInterval keeps the self-test from being a load.
	minInterval = time.Second
	maxWeight   = 100
	maxLevel    = 10
)

// Validate reports everything in the configuration that cannot be used, by field.
func (c *Configuration) Validate() error {
	var errs field.ErrorList
	defaults := field.NewPath("defaults")
	errs = append(errs, oneOf(defaults.Child("enforcement"), c.Defaults.Enforcement, enforcements)...)
	errs = append(errs, oneOf(defaults.Child("rolloutStrategy"), freshness.Strategy(c.Defaults.RolloutStrategy), strategies)...)
	for i, f := range c.Floors {
		errs = append(errs, f.validate(field.NewPath("floors").Index(i))...)
	}
	errs = append(errs, atLeast(field.NewPath("revisions", "limit"), c.Revisions.Limit, 1)...)
	errs = append(errs, atLeast(field.NewPath("replacementBudget"), c.ReplacementBudget, 1)...)
	errs = append(errs, c.validateNamespaces()...)
	errs = append(errs, c.Webhook.validate(field.NewPath("webhook"))...)
	errs = append(errs, c.Metrics.validate(field.NewPath("metrics"))...)
	errs = append(errs, c.Profiling.validateLocal(field.NewPath("profiling"))...)
	errs = append(errs, c.Health.validate(field.NewPath("health"))...)
	errs = append(errs, c.GracePeriod.validate(field.NewPath("gracePeriod"), 0)...)
	errs = append(errs, c.ReleasePeriod.validate(field.NewPath("releasePeriod"), time.Second)...)
	errs = append(errs, c.SelfTest.Interval.validate(field.NewPath("selfTest", "interval"), minInterval)...)
	errs = append(errs, c.Scheduling.validate(field.NewPath("scheduling"))...)
	logging := field.NewPath("logging")
	errs = append(errs, between(logging.Child("level"), c.Logging.Level, maxLevel)...)
	errs = append(errs, oneOf(logging.Child("format"), c.Logging.Format, formats)...)
	return errs.ToAggregate()
}

func (f Floor) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	selector := at.Child("namespaceSelector")
	if f.NamespaceSelector == nil {
		errs = append(errs, field.Required(selector, "write {} for all namespaces"))
	} else {
		errs = append(errs, metav1validation.ValidateLabelSelector(f.NamespaceSelector, metav1validation.LabelSelectorValidationOptions{}, selector)...)
	}
	if f.MinimumEnforcement == "" && f.MinimumStrategy == "" {
		errs = append(errs, field.Required(at, "minimumEnforcement, minimumStrategy or both have to be given"))
	}
	if f.MinimumEnforcement != "" {
		errs = append(errs, oneOf(at.Child("minimumEnforcement"), f.MinimumEnforcement, enforcements)...)
	}
	if f.MinimumStrategy != "" {
		errs = append(errs, oneOf(at.Child("minimumStrategy"), freshness.Strategy(f.MinimumStrategy), strategies)...)
	}
	return errs
}

func (c *Configuration) validateNamespaces() field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("namespaces")
	for i, ns := range c.Namespaces {
		errs = append(errs, namespace(at.Index(i), ns)...)
		if slices.Contains(c.Namespaces[:i], ns) {
			errs = append(errs, field.Duplicate(at.Index(i), ns))
		}
	}
	if c.LeaderElection.Namespace != "" {
		errs = append(errs, namespace(field.NewPath("leaderElection", "namespace"), c.LeaderElection.Namespace)...)
	}
	if c.LeaderElection.Deployment != "" {
		at := field.NewPath("leaderElection", "deployment")
		for _, problem := range validation.IsDNS1123Subdomain(c.LeaderElection.Deployment) {
			errs = append(errs, field.Invalid(at, c.LeaderElection.Deployment, problem))
		}
	}
	of := field.NewPath("selfTest", "namespace")
	if len(c.Namespaces) > 0 && !slices.Contains(c.Namespaces, c.SelfTest.Namespace) {
		errs = append(errs, field.Invalid(of, c.SelfTest.Namespace, "has to be one of namespaces: nothing is judged in others"))
	}
	return append(errs, namespace(of, c.SelfTest.Namespace)...)
}

func (w Webhook) validate(at *field.Path) field.ErrorList {
	errs := address(at.Child("bindAddress"), w.BindAddress)
	cert := at.Child("certificate")
	if w.Certificate.SecretName != "" && w.Certificate.Directory != "" {
		errs = append(errs, field.Invalid(cert, w.Certificate.Directory, "secretName and directory exclude each other: keep one"))
	}
	if w.Certificate.SecretName == "" && w.Certificate.SecretNamespace != "" {
		errs = append(errs, field.Required(cert.Child("secretName"), "secretNamespace is given"))
	}
	if w.Certificate.SecretName == "" && w.Certificate.GenerateFor != "" {
		errs = append(errs, field.Required(cert.Child("secretName"), "generateFor is given, and what is made needs a place"))
	}
	for _, problem := range serviceName(w.Certificate.GenerateFor) {
		errs = append(errs, field.Invalid(cert.Child("generateFor"), w.Certificate.GenerateFor, problem))
	}
	if w.Certificate.SecretName != "" {
		for _, problem := range validation.IsDNS1123Subdomain(w.Certificate.SecretName) {
			errs = append(errs, field.Invalid(cert.Child("secretName"), w.Certificate.SecretName, problem))
		}
	}
	if w.Certificate.SecretNamespace != "" {
		errs = append(errs, namespace(cert.Child("secretNamespace"), w.Certificate.SecretNamespace)...)
	}
	if len(w.Clients.Names) > 0 && w.Clients.CAFile == "" {
		errs = append(errs, field.Required(at.Child("clients", "caFile"), "names are given, and no CA that could vouch for them"))
	}
	return errs
}

func (l Listener) validate(at *field.Path) field.ErrorList {
	if l.BindAddress == "0" {
		return nil
	}
	return address(at.Child("bindAddress"), l.BindAddress)
}

// validateLocal is for what has secrets in it.
func (l Listener) validateLocal(at *field.Path) field.ErrorList {
	if errs := l.validate(at); len(errs) > 0 {
		return errs
	}
	if !IsLocal(l.BindAddress) {
		return field.ErrorList{field.Invalid(at.Child("bindAddress"), l.BindAddress, "has to be of this host only, as 127.0.0.1:6060 is, or 0")}
	}
	return nil
}

// IsLocal reports whether nobody but processes of this host reaches an address; 0 is
// reached by nobody.
func IsLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return address == "0" || err == nil && net.ParseIP(host).IsLoopback()
}

func (s Scheduling) validate(at *field.Path) field.ErrorList {
	errs := oneOf(at.Child("mode"), s.Mode, schedulingModes)
	for _, problem := range validation.IsDNS1123Subdomain(s.SchedulerName) {
		errs = append(errs, field.Invalid(at.Child("schedulerName"), s.SchedulerName, problem))
	}
	weights := at.Child("weights")
	errs = append(errs, between(weights.Child("zone"), s.Weights.Zone, maxWeight)...)
	errs = append(errs, between(weights.Child("node"), s.Weights.Node, maxWeight)...)
	return append(errs, between(weights.Child("image"), s.Weights.Image, maxWeight)...)
}

func (d Duration) validate(at *field.Path, least time.Duration) field.ErrorList {
	switch {
	case d.wrong != "":
		return field.ErrorList{field.Invalid(at, d.wrong, "write a duration such as 30s or 1m30s")}
	case d.Duration < least:
		return field.ErrorList{field.Invalid(at, d.String(), "has to be at least "+least.String())}
	}
	return nil
}

func oneOf[T ~string](at *field.Path, value T, all []T) field.ErrorList {
	if slices.Contains(all, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, all)}
}

func atLeast(at *field.Path, value, least int) field.ErrorList {
	if value >= least {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, "has to be at least "+strconv.Itoa(least))}
}

func between(at *field.Path, value, most int) field.ErrorList {
	if value >= 0 && value <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, "has to be 0 to "+strconv.Itoa(most))}
}

func namespace(at *field.Path, name string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(at, name, problem))
	}
	return errs
}

func address(at *field.Path, value string) field.ErrorList {
	const want = "write host:port or :port, the port a number"
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return field.ErrorList{field.Invalid(at, value, want)}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return field.ErrorList{field.Invalid(at, value, want)}
	}
	return nil
}

func serviceName(name string) []string {
	if name == "" {
		return nil
	}
	return validation.IsDNS1035Label(name)
}
