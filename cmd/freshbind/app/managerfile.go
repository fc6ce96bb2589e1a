package app

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/webhooks"
)

// fileFlag is a flag whose value the configuration file may have instead.
type fileFlag struct {
	flag, path string
	// value is the file's, as the flag takes it.
	value func(*config.File) string
}

var fileFlags = []fileFlag{
	{"default-enforcement", "defaults.enforcement", func(f *config.File) string { return f.Defaults.Enforcement }},
	{"default-rollout-strategy", "defaults.rolloutStrategy", func(f *config.File) string { return f.Defaults.RolloutStrategy }},
	{"repair", "repair", func(f *config.File) string { return strconv.FormatBool(f.Repair) }},
	{"revision-history-limit", "revisions.limit", func(f *config.File) string { return strconv.Itoa(f.Revisions.Limit) }},
	{"revision-digests", "revisions.digests", func(f *config.File) string { return strconv.FormatBool(f.Revisions.Digests) }},
	{"replacement-budget", "replacementBudget", func(f *config.File) string { return strconv.Itoa(f.ReplacementBudget) }},
	{"namespaces", "namespaces", func(f *config.File) string { return strings.Join(f.Namespaces, ",") }},
	{"leader-elect", "leaderElection.enabled", func(f *config.File) string { return strconv.FormatBool(f.LeaderElection.Enabled) }},
	{"leader-election-namespace", "leaderElection.namespace", func(f *config.File) string { return f.LeaderElection.Namespace }},
	{"deployment", "leaderElection.deployment", func(f *config.File) string { return f.LeaderElection.Deployment }},
	{"webhook-bind-address", "webhook.bindAddress", func(f *config.File) string { return f.Webhook.BindAddress }},
	{"client-ca-file", "webhook.clients.caFile", func(f *config.File) string { return f.Webhook.Clients.CAFile }},
	{"client-names", "webhook.clients.names", func(f *config.File) string { return strings.Join(f.Webhook.Clients.Names, ",") }},
	{"cert-dir", "webhook.certificate", func(f *config.File) string { return f.Webhook.Certificate.Directory }},
	{"metrics-bind-address", "metrics.bindAddress", func(f *config.File) string { return f.Metrics.BindAddress }},
	{"metrics-secure", "metrics.secure", func(f *config.File) string { return strconv.FormatBool(f.Metrics.Secure) }},
	{"health-probe-bind-address", "health.bindAddress", func(f *config.File) string { return f.Health.BindAddress }},
	{"pprof-bind-address", "profiling.bindAddress", func(f *config.File) string { return f.Profiling.BindAddress }},
	{"grace-period", "gracePeriod", func(f *config.File) string { return f.GracePeriod.String() }},
	{"release-period", "releasePeriod", func(f *config.File) string { return f.ReleasePeriod.String() }},
	{"self-test", "selfTest.enabled", func(f *config.File) string { return strconv.FormatBool(f.SelfTest.Enabled) }},
	{"scheduling", "scheduling.mode", func(f *config.File) string { return f.Scheduling.Mode }},
	{"scheduler-name", "scheduling.schedulerName", func(f *config.File) string { return f.Scheduling.SchedulerName }},
	{"scheduling-weight-zone", "scheduling.weights.zone", func(f *config.File) string { return strconv.Itoa(f.Scheduling.Weights.Zone) }},
	{"scheduling-weight-node", "scheduling.weights.node", func(f *config.File) string { return strconv.Itoa(f.Scheduling.Weights.Node) }},
	{"scheduling-weight-image", "scheduling.weights.image", func(f *config.File) string { return strconv.Itoa(f.Scheduling.Weights.Image) }},
	{"platform-kruise", "platforms.kruise", func(f *config.File) string { return strconv.FormatBool(f.Platforms.Kruise) }},
	{"zap-log-level", "logging.level", func(f *config.File) string { return zapLevel(f.Logging.Level) }},
	{"zap-encoder", "logging.format", func(f *config.File) string { return zapEncoder(f.Logging.Format) }},
}

func zapLevel(verbosity int) string {
	if verbosity == 0 {
		return "info"
	}
	return strconv.Itoa(verbosity)
}

func zapEncoder(format string) string {
	if format == config.Text {
		return "console"
	}
	return format
}

// readFile takes over what the configuration file says. Saying one thing in two
// places is an error: which one counts could only be guessed.
func (o *ManagerOptions) readFile(flags *pflag.FlagSet) error {
	if o.ConfigFile == "" {
		return nil
	}
	f, err := config.Load(o.ConfigFile)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	for _, s := range fileFlags {
		if !f.IsSet(s.path) {
			continue
		}
		if flags.Changed(s.flag) {
			return fmt.Errorf("--%s and %s in %s say the same: keep one of them", s.flag, s.path, o.ConfigFile)
		}
	}
	for _, s := range fileFlags {
		if !f.IsSet(s.path) {
			continue
		}
		if err := flags.Set(s.flag, s.value(f)); err != nil {
			return fmt.Errorf("%s in %s: %w", s.path, o.ConfigFile, err)
		}
	}
	o.floors, o.Certificate = f.Floors, f.Webhook.Certificate
	enabled := o.SelfTest.Enabled
	o.SelfTest = f.SelfTest
	o.SelfTest.Enabled = enabled
	return nil
}

// scopeOf says where policies hold, by the default mode and by floors.
func scopeOf(enforcement string, floors []config.Floor) webhooks.Scope {
	s := webhooks.Scope{EnforcedByDefault: settings.Mode(enforcement) == settings.Enforce}
	for _, f := range floors {
		if settings.Mode(f.MinimumEnforcement) == settings.Enforce {
			s.Enforced = append(s.Enforced, *f.NamespaceSelector)
		}
	}
	return s
}

// defaultsOf are what the administrator says, by flags or by a file.
func defaultsOf(enforcement, strategy string, floors []config.Floor) (settings.Defaults, error) {
	out := settings.Defaults{Mode: settings.Mode(enforcement), Strategy: freshness.Strategy(strategy)}
	for _, f := range floors {
		next, err := settings.NewFloor(f.NamespaceSelector, settings.Mode(f.MinimumEnforcement) == settings.Enforce, freshness.Strategy(f.MinimumStrategy))
		if err != nil {
			return settings.Defaults{}, err
		}
		out.Floors = append(out.Floors, next)
	}
	return out, nil
}
