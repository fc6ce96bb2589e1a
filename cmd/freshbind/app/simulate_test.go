package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/cli"
)

// What is wrong with the command line or the files is found before any cluster
// is asked: none of these cases has one.
func TestSimulateUsage(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none.yaml")
	if err := os.WriteFile(none, []byte("# nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const accepted = "found no document that simulate covers: it accepts SandboxTemplate, SandboxWarmPool and SandboxClaim of extensions.agents.x-k8s.io, SandboxSet of agents.kruise.io, and Namespace"
	cases := map[string]struct {
		args       []string
		stdin      string
		want       string
		wantStderr string
		code       int
	}{
		"no file":          {want: "-f is required: name a file, or - for standard input", code: 2},
		"an argument":      {args: []string{"x.yaml"}, want: `unexpected argument "x.yaml": name files with -f`, code: 2},
		"empty name":       {args: []string{"-f", ""}, want: "-f: the name of the file is empty", code: 2},
		"stdin twice":      {args: []string{"-f", "-", "-f", none, "-f", "-"}, want: "-f -: standard input can be read only once", code: 2},
		"other output":     {args: []string{"-f", "-", "-o", "wide"}, want: `-o "wide": accepted are json, yaml`, code: 2},
		"unknown mode":     {args: []string{"-f", "-", "--default-enforcement", "on"}, want: `--default-enforcement: "on" is not a mode: use enforce or audit`, code: 2},
		"unknown strategy": {args: []string{"-f", "-", "--default-rollout-strategy", "x"}, want: `--default-rollout-strategy: "x" is not a strategy: use Recreate, RollingUpdate or OnReplenish`, code: 2},
		"missing file":     {args: []string{"-f", filepath.Join(dir, "no")}, want: "read " + filepath.Join(dir, "no") + ": open " + filepath.Join(dir, "no") + ": no such file or directory", code: 1},
		"a directory":      {args: []string{"-f", dir}, want: "read " + dir + ": is a directory: name the files in it", code: 1},
		"nothing in it":    {args: []string{"-f", none}, want: accepted, code: 1},
		"no YAML":          {args: []string{"-f", "-"}, stdin: "a: b: c", want: "standard input: document 1: is not YAML", code: 1},
		"other kinds alone": {
			args: []string{"-f", "-"}, stdin: "kind: Secret\napiVersion: v1", want: accepted, code: 1,
			wantStderr: `standard input: document 1: skipped: simulate does not cover kind "Secret" of apiVersion "v1"` + "\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			cmd := NewSimulateCommand(genericiooptions.IOStreams{In: strings.NewReader(tc.stdin), Out: &out, ErrOut: &errOut})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(append([]string{}, tc.args...))
			err := cmd.ExecuteContext(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error = %v, want %s", err, tc.want)
			}
			code := exitFailed
			var exit *ExitError
			if errors.As(err, &exit) {
				code = exit.Code
			}
			if code != tc.code || out.Len() > 0 {
				t.Errorf("exit code %d, want %d; output %q", code, tc.code, out.String())
			}
			if diff := cmp.Diff(tc.wantStderr, errOut.String()); diff != "" {
				t.Errorf("error stream (-want,+got):\n%s", diff)
			}
		})
	}
}

// Kinds are known by their groups, and each is asked for where its platform is.
func TestSimulatedResources(t *testing.T) {
	s := &simulation{}
	for _, p := range predictedPlatforms() {
		s.platforms = append(s.platforms, simulatedPlatform{kinds: p.kinds})
	}
	const extensions, boxes = "extensions.agents.x-k8s.io", "agents.kruise.io"
	for kind, want := range map[schema.GroupKind]struct {
		resource string
		platform int
	}{
		{Group: extensions, Kind: "SandboxTemplate"}: {"sandboxtemplates." + extensions, 0},
		{Group: extensions, Kind: "SandboxWarmPool"}: {"sandboxwarmpools." + extensions, 0},
		{Group: extensions, Kind: "SandboxClaim"}:    {"sandboxclaims." + extensions, 0},
		{Group: extensions, Kind: "Sandbox"}:         {},
		{Group: boxes, Kind: "SandboxSet"}:           {"sandboxsets." + boxes, 1},
		{Group: boxes, Kind: "SandboxTemplate"}:      {},
		{Group: boxes, Kind: "SandboxClaim"}:         {},
		{Group: "apps", Kind: "SandboxSet"}:          {},
		{Kind: "SandboxTemplate"}:                    {},
		{Kind: "Namespace"}:                          {"namespaces", 0},
		{Group: extensions, Kind: "Namespace"}:       {},
		{}:                                           {},
	} {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(kind.WithVersion("v1"))
		gr, known := simulatedResource(obj)
		if gr.String() != want.resource || known != (want.resource != "") {
			t.Errorf("%s is %q, known: %t, want %q", kind, gr, known, want.resource)
		}
		if got := s.of(gr).kinds.Product; got != s.platforms[want.platform].kinds.Product {
			t.Errorf("%s is of %s", kind, got)
		}
	}
}

func TestSimulateDefaults(t *testing.T) {
	const schema = `{"properties": {
		"policy": {"type": "string", "default": "Disallowed"},
		"count": {"type": "integer", "default": 1},
		"nested": {"properties": {"inner": {"default": ""}}},
		"object": {"default": {}, "properties": {"inner": {"default": true}}},
		"list": {"items": {"properties": {"protocol": {"default": "TCP"}}}},
		"map": {"additionalProperties": {"properties": {"inner": {"default": "x"}}}},
		"free": {"additionalProperties": true}
	}}`
	cases := map[string]struct{ in, want string }{
		"nothing set":         {`{}`, `{"policy": "Disallowed", "count": 1, "object": {"inner": true}}`},
		"null is not set":     {`{"policy": null, "object": null}`, `{"policy": "Disallowed", "count": 1, "object": {"inner": true}}`},
		"set":                 {`{"policy": "", "count": 0, "object": {"inner": false}}`, `{"policy": "", "count": 0, "object": {"inner": false}}`},
		"below what is there": {`{"policy": "A", "count": 2, "object": {}, "nested": {}, "list": [{"port": 1}, {"protocol": "UDP"}], "map": {"a": {}}}`, `{"policy": "A", "count": 2, "object": {"inner": true}, "nested": {"inner": ""}, "list": [{"port": 1, "protocol": "TCP"}, {"protocol": "UDP"}], "map": {"a": {"inner": "x"}}}`},
		"of no declared type": {`{"policy": "A", "count": 2, "object": {"inner": 1}, "free": {"a": {"b": 1}}, "unknown": {"a": [1]}}`, `{"policy": "A", "count": 2, "object": {"inner": 1}, "free": {"a": {"b": 1}}, "unknown": {"a": [1]}}`},
	}
	var s openAPISchema
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			decode := func(text string) (v map[string]any) {
				if err := utiljson.Unmarshal([]byte(text), &v); err != nil {
					t.Fatal(err)
				}
				return v
			}
			got := decode(tc.in)
			if err := s.fill(got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(tc.want), got); diff != "" {
				t.Errorf("fill() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestSimulatePrint(t *testing.T) {
	results := []simulated{
		{Kind: "SandboxTemplate", Namespace: "prod", Name: "python", Stored: true, Says: "3 idle members become stale", Warnings: []string{"3 idle members become stale", "something else"}, Before: "v1-a", After: "v1-b", Difference: "x: 1 -> 2", Pools: []simulatedPool{
			{Name: "python", Mode: "enforce", Strategy: "Recreate", Idle: 4, BecomeStale: 1, BecomeFresh: 1, StaleAre: advice.Deleted},
		}},
		{Kind: "SandboxClaim", Namespace: "prod", Says: "gets a member", Outcome: advice.Warm},
		{Kind: "Namespace", Name: "prod", Stored: true, Says: "would be refused", Refused: []string{"metadata.labels: no"}},
	}
	cases := map[string]string{
		"": `SandboxTemplate prod/python (v1-a -> v1-b): 3 idle members become stale
  something else
  x: 1 -> 2
  POOL     MODE      STRATEGY   IDLE   BECOME-STALE   BECOME-FRESH   STAY-STALE   STALE-MEMBERS
  python   enforce   Recreate   4      1              1              0            Recreate deletes it
SandboxClaim prod/<generated>: gets a member
Namespace prod: would be refused
  metadata.labels: no
`,
		"yaml": `apiVersion: cli.freshbind.dev/v1alpha1
items:
- after: v1-b
  before: v1-a
  difference: 'x: 1 -> 2'
  kind: SandboxTemplate
  name: python
  namespace: prod
  pools:
  - becomeFresh: 1
    becomeStale: 1
    idle: 4
    mode: enforce
    name: python
    staleAre: Deleted
    stayStale: 0
    strategy: Recreate
  says: 3 idle members become stale
  stored: true
  warnings:
  - 3 idle members become stale
  - something else
- kind: SandboxClaim
  name: ""
  namespace: prod
  outcome: Warm
  says: gets a member
  stored: false
- kind: Namespace
  name: prod
  refused:
  - 'metadata.labels: no'
  says: would be refused
  stored: true
kind: SimulationList
`,
	}
	for output, want := range cases {
		t.Run("as "+output, func(t *testing.T) {
			var out bytes.Buffer
			o := &simulateOptions{streams: genericiooptions.IOStreams{Out: &out}, output: cli.Output{Format: output}}
			if err := o.print(results); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("print() (-want,+got):\n%s", diff)
			}
		})
	}
}
