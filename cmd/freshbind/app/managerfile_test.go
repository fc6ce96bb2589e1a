package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/settings"
)

func readTestFile(t *testing.T, content string, args ...string) (*ManagerOptions, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	content = "apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\n" + content
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	o := NewManagerOptions()
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(append(args, "--config="+path)); err != nil {
		t.Fatal(err)
	}
	return o, o.readFile(fs)
}

func TestFileIsTakenOver(t *testing.T) {
	o, err := readTestFile(t, `
defaults: {enforcement: enforce, rolloutStrategy: Recreate}
floors: [{namespaceSelector: {}, minimumEnforcement: enforce}]
revisions: {limit: 3, digests: true}
replacementBudget: 7
namespaces: [a, b]
leaderElection: {enabled: false, namespace: c, deployment: e}
webhook: {bindAddress: "127.0.0.1:1", certificate: {secretName: tls, secretNamespace: d}}
metrics: {bindAddress: ":2", secure: true}
health: {bindAddress: ":3"}
profiling: {bindAddress: "127.0.0.1:4"}
gracePeriod: 4s
releasePeriod: 6s
selfTest: {enabled: false, interval: 5s}
logging: {level: 2, format: text}
`)
	if err != nil {
		t.Fatal(err)
	}
	type plain struct {
		Enforcement, Strategy               string
		Limit, Budget                       int
		Digests, Elect, SelfTest            bool
		LeaseNamespace, Deployment          string
		Namespaces                          []string
		Webhook, Metrics, Health, SelfTests string
		Profile                             string
		MetricsSecure                       bool
		Grace, Release, Interval            time.Duration
		Certificate                         config.Certificate
		Floors                              int
	}
	want := plain{
		Enforcement: "enforce", Strategy: "Recreate", Limit: 3, Budget: 7, Digests: true, LeaseNamespace: "c", Deployment: "e",
		Namespaces: []string{"a", "b"}, Webhook: "127.0.0.1:1", Metrics: ":2", Health: ":3", SelfTests: "a", Profile: "127.0.0.1:4", MetricsSecure: true,
		Grace: 4 * time.Second, Release: 6 * time.Second, Interval: 5 * time.Second,
		Certificate: config.Certificate{SecretName: "tls", SecretNamespace: "d"}, Floors: 1,
	}
	got := plain{
		Enforcement: o.enforcement, Strategy: o.strategy, Limit: o.RevisionLimit, Budget: o.Budget, Digests: o.RevisionDigests,
		MetricsSecure: o.MetricsSecure, Elect: o.LeaderElect, SelfTest: o.SelfTest.Enabled, LeaseNamespace: o.LeaderElectNamespace, Deployment: o.Deployment, Namespaces: o.Namespaces,
		Webhook: o.WebhookAddress, Metrics: o.MetricsAddress, Health: o.HealthAddress, SelfTests: o.SelfTest.Namespace,
		Profile: o.ProfileAddress,
		Grace:   o.GracePeriod, Release: o.ReleasePeriod, Interval: o.SelfTest.Interval.Duration, Certificate: o.Certificate, Floors: len(o.floors),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
	if o.log.Level == nil || o.log.NewEncoder == nil {
		t.Error("the file's logging was not taken over")
	}
}

func TestFlagsMayAddToTheFileButNotSayTheSame(t *testing.T) {
	o, err := readTestFile(t, "revisions: {limit: 3}\n", "--replacement-budget=4", "--zap-log-level=2")
	if err != nil {
		t.Fatal(err)
	}
	if o.RevisionLimit != 3 || o.Budget != 4 || o.enforcement != string(settings.Audit) {
		t.Errorf("limit %d, budget %d, enforcement %s; want 3, 4, audit", o.RevisionLimit, o.Budget, o.enforcement)
	}
	for content, flag := range map[string]string{
		"revisions: {limit: 3}":                     "--revision-history-limit=3",
		"repair: false":                             "--repair=true",
		"leaderElection: {enabled: true}":           "--leader-elect=false",
		"webhook: {certificate: {secretName: tls}}": "--cert-dir=/certs",
		"logging: {level: 1}":                       "--zap-log-level=1",
	} {
		_, err := readTestFile(t, content, flag)
		name, _, _ := strings.Cut(flag, "=")
		path, _, _ := strings.Cut(content, ":")
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s with %s: %v", content, flag, err)
		}
	}
}

// TestDefaultsAreTheFiles: with and without a file the same holds.
func TestDefaultsAreTheFiles(t *testing.T) {
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	NewManagerOptions().AddFlags(fs)
	f := &config.File{Configuration: config.Default()}
	for _, s := range fileFlags {
		flag := fs.Lookup(s.flag)
		if flag == nil {
			t.Errorf("there is no flag --%s", s.flag)
			continue
		}
		if strings.HasPrefix(s.flag, "zap-") {
			continue
		}
		if got, want := flag.DefValue, s.value(f); strings.Trim(got, "[]") != want {
			t.Errorf("--%s is %q by default, %s is %q", s.flag, got, s.path, want)
		}
	}
}

func TestBrokenFileIsWrongUsage(t *testing.T) {
	_, err := readTestFile(t, "revisions: {limits: 3}\n")
	if err == nil || !strings.Contains(err.Error(), "did you mean limit?") {
		t.Errorf("error is %v", err)
	}
}
