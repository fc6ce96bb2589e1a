package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/internal/settings"
)

const head = "apiVersion: config.freshbind.dev/v1alpha1\nkind: FreshbindConfiguration\n"

var plain = cmpopts.IgnoreUnexported(Duration{})

func TestParseFillsInDefaults(t *testing.T) {
	f, err := Parse([]byte("# a comment\n---\n" + head + `
defaults: {enforcement: enforce}
floors:
- namespaceSelector: {matchLabels: {tier: prod}}
  minimumEnforcement: enforce
  minimumStrategy: RollingUpdate
leaderElection: {enabled: false, namespace: ""}
webhook: {certificate: {secretName: tls}}
gracePeriod: 1m30s
releasePeriod: 5m
namespaces: [a, b]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := baseDefaults()
	want.Defaults.Enforcement = string(settings.Enforce)
	want.Floors = []Floor{{
		NamespaceSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}},
		MinimumEnforcement: string(settings.Enforce), MinimumStrategy: "RollingUpdate",
	}}
	want.LeaderElection.Enabled = false
	want.Webhook.Certificate.SecretName = "tls"
	want.GracePeriod.Duration, want.ReleasePeriod.Duration = 90*time.Second, 5*time.Minute
	want.Namespaces, want.SelfTest.Namespace = []string{"a", "b"}, "a"
	if diff := cmp.Diff(want, f.Configuration, plain); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
	for path, want := range map[string]bool{
		"defaults": true, "defaults.enforcement": true, "defaults.rolloutStrategy": false,
		"leaderElection.enabled": true, "leaderElection.namespace": false, "namespaces": true, "metrics": false, "gracePeriod.seconds": false, "logging.level": false,
	} {
		if got := f.IsSet(path); got != want {
			t.Errorf("Says(%s) = %t, want %t", path, got, want)
		}
	}
}

func TestDefaultIsWhatAnEmptyFileMeans(t *testing.T) {
	f, err := Parse([]byte(head))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), f.Configuration, plain); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}

func TestDefaultsCanBeWrittenAndRead(t *testing.T) {
	data, err := yaml.Marshal(Default())
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if diff := cmp.Diff(Default(), f.Configuration, plain); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
	if strings.Contains(string(data), "null") {
		t.Errorf("a default is null:\n%s", data)
	}
}

// The file in the documentation says the defaults.
func TestDocumentationShowsTheDefaults(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "```yaml\napiVersion:")
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed {
		t.Fatal("docs/configuration.md shows no file")
	}
	f, err := Parse([]byte("apiVersion:" + block))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), f.Configuration, plain); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
	for _, key := range keysOf("", reflect.TypeFor[Configuration]()) {
		parent, name := split(key)
		if parent != "floors" && !strings.HasPrefix(parent, "floors.") && !strings.Contains(block, name+":") && name != "apiVersion" {
			t.Errorf("docs/configuration.md does not show %s", key)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		// want are parts of the message.
		want []string
	}{
		"nothing":              {"# only a comment\n", []string{"apiVersion: config.freshbind.dev/v1alpha1"}},
		"a list":               {"- a\n", []string{"has to be an object"}},
		"two documents":        {head + "---\n" + head, []string{"more than one document"}},
		"no version":           {"kind: FreshbindConfiguration\n", []string{"apiVersion: is missing"}},
		"another version":      {"apiVersion: config.freshbind.dev/v1\nkind: FreshbindConfiguration\n", []string{`apiVersion: is "config.freshbind.dev/v1"`, "v1alpha1"}},
		"another kind":         {"apiVersion: config.freshbind.dev/v1alpha1\nkind: Deployment\n", []string{`kind: is "Deployment"`}},
		"a key twice":          {head + "gracePeriod: 1s\ngracePeriod: 2s\n", []string{"gracePeriod", "already set"}},
		"a key twice in JSON":  {`{"apiVersion":"config.freshbind.dev/v1alpha1","kind":"FreshbindConfiguration","revisions":{"limit":1,"limit":2}}`, []string{"limit", "already set"}},
		"a misspelt key":       {head + "replacementBudgets: 3\n", []string{"replacementBudgets: is not a key: did you mean replacementBudget?"}},
		"another case":         {head + "Defaults: {}\n", []string{"Defaults: is not a key: did you mean defaults?"}},
		"a misspelt inner key": {head + "revisions: {limt: 3}\n", []string{"revisions.limt: is not a key: did you mean limit?"}},
		"one in a list": {
			head + "floors: [{namespaceSelector: {}, minimumEnforcement: enforce}, {namespaceSelector: {}, minimumEnforcment: enforce}]\n",
			[]string{"floors[1].minimumEnforcment: is not a key: did you mean minimumEnforcement?"},
		},
		"one in a selector":     {head + "floors: [{namespaceSelector: {matchLabel: {}}}]\n", []string{"floors[0].namespaceSelector.matchLabel: is not a key: did you mean matchLabels?"}},
		"a key in another part": {head + "secretName: tls\n", []string{"secretName: is not a key: did you mean webhook.certificate.secretName?"}},
		"a key of nowhere":      {head + "revisions: {colour: red}\n", []string{"revisions.colour: is not a key: there is limit, digests"}},
		"two wrong keys":        {head + "revisions: {limt: 3}\nlogging: {levl: 2}\n", []string{"revisions.limt", "logging.levl"}},
		"a wrong type":          {head + "revisions: {limit: many}\n", []string{"revisions.limit: write a whole number instead of string"}},
		"a fraction":            {head + "revisions: {limit: 1.5}\n", []string{"revisions.limit", "write a whole number"}},
		"an object for a list":  {head + "namespaces: {a: b}\n", []string{"namespaces: write a list instead of object"}},
		"a bad duration":        {head + "gracePeriod: soon\n", []string{"gracePeriod", `"soon"`, "such as 30s"}},
		"a number of seconds":   {head + "gracePeriod: 20\n", []string{"gracePeriod", `"20"`, "such as 30s"}},
		"no time to release":    {head + "releasePeriod: 0s\n", []string{"releasePeriod", "at least 1s"}},
		"a negative duration":   {head + "gracePeriod: -1s\n", []string{"gracePeriod", "at least 0s"}},
		"a hot self-test":       {head + "selfTest: {interval: 1ms}\n", []string{"selfTest.interval", "at least 1s"}},
		"a bad mode":            {head + "defaults: {enforcement: strict}\n", []string{"defaults.enforcement", `"strict"`, "audit", "enforce"}},
		"a bad strategy":        {head + "defaults: {rolloutStrategy: recreate}\n", []string{"defaults.rolloutStrategy", `"recreate"`, "Recreate"}},
		"two mistakes":          {head + "replacementBudget: 0\nrevisions: {limit: 0}\n", []string{"replacementBudget", "revisions.limit", "at least 1"}},
		"a floor for nobody":    {head + "floors: [{minimumEnforcement: enforce}]\n", []string{"floors[0].namespaceSelector: Required value: write {} for all"}},
		"a floor of nothing":    {head + "floors: [{namespaceSelector: {}}]\n", []string{"floors[0]: Required value: minimumEnforcement"}},
		"a bad floor":           {head + "floors: [{namespaceSelector: {}, minimumStrategy: Rolling}]\n", []string{"floors[0].minimumStrategy", "RollingUpdate"}},
		"a bad selector": {
			head + "floors: [{namespaceSelector: {matchExpressions: [{key: a, operator: Is}]}, minimumEnforcement: enforce}]\n",
			[]string{"floors[0].namespaceSelector.matchExpressions[0].operator"},
		},
		"Secret and directory":           {head + "webhook: {certificate: {secretName: a, directory: /b}}\n", []string{"webhook.certificate", "exclude each other"}},
		"a certificate in no Secret":     {head + "webhook: {certificate: {generateFor: a}}\n", []string{"webhook.certificate.secretName: Required"}},
		"a Service of no name":           {head + "webhook: {certificate: {secretName: a, generateFor: A_b}}\n", []string{"webhook.certificate.generateFor"}},
		"a namespace of no Secret":       {head + "webhook: {certificate: {secretNamespace: a}}\n", []string{"webhook.certificate.secretName: Required"}},
		"no port":                        {head + "webhook: {bindAddress: localhost}\n", []string{"webhook.bindAddress", "host:port"}},
		"a named port":                   {head + "metrics: {bindAddress: ':http'}\n", []string{"metrics.bindAddress", "the port a number"}},
		"profiles for everybody":         {head + "profiling: {bindAddress: ':6060'}\n", []string{"profiling.bindAddress", "of this host only"}},
		"profiles for a network":         {head + "profiling: {bindAddress: '10.0.0.1:6060'}\n", []string{"profiling.bindAddress", "127.0.0.1"}},
		"a bad namespace":                {head + "namespaces: [a, B]\n", []string{"namespaces[1]", "lower case"}},
		"a namespace twice":              {head + "namespaces: [a, a]\n", []string{"namespaces[1]: Duplicate"}},
		"a self-test where nobody looks": {head + "namespaces: [a]\nselfTest: {namespace: b}\n", []string{"selfTest.namespace", "one of namespaces"}},
		"a scheduling mode":              {head + "scheduling: {mode: extender}\n", []string{"scheduling.mode", "Extender"}},
		"a weight":                       {head + "scheduling: {weights: {zone: -1}}\n", []string{"scheduling.weights.zone", "0 to 100"}},
		"a log format":                   {head + "logging: {format: xml}\n", []string{"logging.format", "json", "text"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.file))
			if err == nil {
				t.Fatal("was accepted")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte(head+"revisions: {limit: 0}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "revisions.limit") {
		t.Errorf("a wrong file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head + "gracePeriod: 1s\nfloors: [{namespaceSelector: {}, minimumEnforcement: enforce}]\n"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Errorf("what was parsed is not valid: %v", err)
		}
	})
}
