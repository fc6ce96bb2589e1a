package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

func TestSimulate(t *testing.T) {
	w := sharedWorld(t)
	s := w.stocked(t, scenario.Enforce())
	p := s.person()
	p.kubeconfig = p.viewer()
	program := w.Guard.Program()

	// What people write has no defaults of the CRD's.
	ports := []any{map[string]any{"name": "c", "image": "sandbox:v1", "ports": []any{map[string]any{"containerPort": 80}}}}
	plain := builders.MakeTemplate(s.Name, "plain").PodSpec(ports, "containers").Obj()
	s.must(s.Create(t.Context(), plain))
	s.eventually("agent-sandbox labels the template", func(context.Context) (string, bool) {
		labels := s.get(upstream.SandboxTemplates, "plain").GetLabels()
		return fmt.Sprint(labels), labels[builders.LabelTemplateRef] != ""
	})
	before := s.written()
	if protocol := fmt.Sprint(s.get(upstream.SandboxTemplates, "plain").Object); !strings.Contains(protocol, "TCP") {
		t.Fatalf("the CRD sets no defaults any more, so this test shows nothing: %s", protocol)
	}
	old := s.get(upstream.SandboxTemplates, "python")
	next := builders.TemplateFrom(old).Image("sandbox:v2").Obj()
	bad := builders.MakePool(s.Name, "bad").Annotation("freshbind.dev/paused", "yes").Obj()
	claims := []*unstructured.Unstructured{
		builders.MakeClaim(s.Name, "warm").Obj(), builders.MakeClaim(s.Name, "cold").Pool("hidden").Obj(), builders.MakeClaim(s.Name, "waits").Pool("missing").Obj(),
	}
	v1, v2, plainHash := hashOf(t, old), hashOf(t, next), hashOf(t, s.get(upstream.SandboxTemplates, "plain"))

	at := func(kind, name, rest string) string { return fmt.Sprintf("%s %s/%s%s\n", kind, s.Name, name, rest) }
	cases := []struct {
		name  string
		stdin string
		args  []string
		want  string
		code  int
	}{
		{name: "as it is stored", stdin: text(t, old), want: at("SandboxTemplate", "python", " ("+v1+"): has the content that is stored: nothing becomes stale")},
		{name: "without defaults", stdin: text(t, plain), want: at("SandboxTemplate", "plain", " ("+plainHash+"): has the content that is stored: nothing becomes stale")},
		{name: "a new template", stdin: text(t, builders.MakeTemplate(s.Name, "new").Obj()), want: at("SandboxTemplate", "new", " (not stored -> "+v1+"): nothing becomes stale: no pool that wants members refers to it")},
		{name: "changed", stdin: text(t, next), want: at("SandboxTemplate", "python", " ("+v1+" -> "+v2+"): 5 idle members become stale (python 3: Recreate deletes them; node 2: OnReplenish keeps serving them)") +
			"  containers[name=c].image: \"sandbox:v1\" -> \"sandbox:v2\"\n" +
			"  POOL     MODE      STRATEGY      IDLE   BECOME-STALE   BECOME-FRESH   STAY-STALE   STALE-MEMBERS\n" +
			"  node     enforce   OnReplenish   2      2              0              0            OnReplenish keeps serving them\n" +
			"  python   enforce   Recreate      3      3              0              0            Recreate deletes them\n"},
		{name: "claims", stdin: text(t, claims...), want: at("SandboxClaim", "warm", ": this claim gets a member of pool python (3 of 3 idle members can be claimed)") +
			at("SandboxClaim", "cold", ": this claim will cold-start: pool hidden has no ready member (0 of 2)") +
			at("SandboxClaim", "waits", ": this claim waits: pool missing does not exist")},
		{name: "misspelt", stdin: text(t, builders.MakeTemplate(s.Name, "new").Set("never", "spec", "podTemplate", "spec", "restartPolicyy").Obj()), code: 1,
			want: at("SandboxTemplate", "new", ": would be refused") +
				"  spec.podTemplate.spec.restartPolicyy: unknown field\nerror: 1 of 1 would be refused\n"},
		{name: "refused", stdin: text(t, bad), code: 1, want: at("SandboxWarmPool", "bad", ": would be refused") +
			"  metadata.annotations[freshbind.dev/paused]: Unsupported value: \"yes\": supported values: \"true\", \"false\"\nerror: 1 of 1 would be refused\n"},
		{name: "other kinds", stdin: "kind: ConfigMap\napiVersion: v1\n---\n" + text(t, old), want: "standard input: document 1: skipped: simulate does not cover kind \"ConfigMap\" of apiVersion \"v1\"\n" +
			at("SandboxTemplate", "python", " ("+v1+"): has the content that is stored: nothing becomes stale")},
		{name: "YAML", stdin: text(t, claims[2]), args: []string{"-o", "yaml"}, want: "apiVersion: cli.freshbind.dev/v1alpha1\nitems:\n- kind: SandboxClaim\n  name: waits\n  namespace: " + s.Name +
			"\n  outcome: Waits\n  says: 'this claim waits: pool missing does not exist'\n  stored: false\n  warnings:\n  - 'this claim waits: pool missing does not exist'\nkind: SimulationList\n"},
		{name: "another namespace", stdin: text(t, old), args: []string{"-n", "default"}, code: 1, want: "error: standard input: document 1: metadata.namespace: is \"" + s.Name + "\", and --namespace is \"default\": leave one of them out\n"},
		{name: "a version that is not served", stdin: text(t, builders.TemplateFrom(old).APIVersion("v2").Obj()), code: 1, want: "error: standard input: document 1: apiVersion: this cluster does not serve extensions.agents.x-k8s.io/v2\n"},
		{name: "no kubeconfig", stdin: text(t, old), args: []string{"--context", "nowhere"}, code: 1, want: "error: read kubeconfig: context \"nowhere\" does not exist\n"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := *p
			p.stage = &stage{s.Namespace, t, w}
			output, code := p.run(program, tc.stdin, append([]string{"simulate", "-f", "-"}, tc.args...)...)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if diff := cmp.Diff(tc.want, output); diff != "" {
				t.Errorf("output (-want,+got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(before, s.written()); diff != "" {
		t.Errorf("simulate wrote (-before,+after):\n%s", diff)
	}
}

// viewer is somebody who may only read.
func (p *person) viewer() string {
	p.t.Helper()
	for _, args := range [][]string{
		{"clusterrole", "--verb=get,list", "--resource=namespaces", "--resource=sandboxes.agents.x-k8s.io",
			"--resource=sandboxtemplates.extensions.agents.x-k8s.io,sandboxwarmpools.extensions.agents.x-k8s.io,sandboxclaims.extensions.agents.x-k8s.io"},
		{"clusterrolebinding", "--clusterrole=simulate-viewer", "--user=viewer"},
	} {
		if _, code := p.run(p.kubectl, "", append([]string{"create", "--save-config", args[0], "simulate-viewer"}, args[1:]...)...); code != 0 {
			p.t.Fatalf("creating the %s: exit code %d", args[0], code)
		}
	}
	cfg, err := p.w.Cluster.User("viewer", "system:authenticated")
	p.must(err)
	path := filepath.Join(p.home, "kubeconfig-viewer")
	p.must(p.w.Cluster.WriteKubeconfig(cfg, path))
	return path
}
