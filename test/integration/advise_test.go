package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// person runs programs as somebody at a keyboard does.
type person struct {
	*stage
	kubectl    string
	kubeconfig string
	home       string
}

func (s *stage) person() *person {
	s.t.Helper()
	tools, err := controlplane.Tools(s.t.Context(), os.Stderr, controlplane.Kubectl)
	s.must(err)
	return &person{s, tools[controlplane.Kubectl], s.w.Cluster.KubeconfigPath(), s.t.TempDir()}
}

// run returns what the program wrote, both streams in order, and its exit code.
func (p *person) run(program, stdin string, args ...string) (output string, code int) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "HOME="+p.home)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	p.t.Logf("$ %s %s\n%s", filepath.Base(program), strings.Join(args, " "), out.String())
	return out.String(), cmd.ProcessState.ExitCode()
}

// text is the object as a person writes it: nothing that a server sets.
func text(t *testing.T, objects ...*unstructured.Unstructured) string {
	t.Helper()
	var documents []string
	for _, o := range objects {
		o = o.DeepCopy()
		for _, path := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
			unstructured.RemoveNestedField(o.Object, "metadata", path)
		}
		delete(o.Object, "status")
		out, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(out))
	}
	return strings.Join(documents, "---\n")
}

// written is all that a person can have changed in the namespace.
func (s *stage) written() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, r := range []schema.GroupResource{upstream.SandboxTemplates, upstream.SandboxWarmPools, upstream.SandboxClaims, upstream.Sandboxes} {
		list, err := s.Resource(r).List(s.t.Context(), metav1.ListOptions{})
		s.must(err)
		for _, o := range list.Items {
			annotations := o.GetAnnotations()
			for _, ours := range []string{settings.RolloutStatusKey, settings.RolloutStateKey, settings.RolloutReasonKey} {
				delete(annotations, ours)
			}
			out[r.Resource+"/"+o.GetName()] = fmt.Sprint(o.GetUID(), o.GetGeneration(), o.GetLabels(), annotations)
		}
	}
	ns, err := s.kube().CoreV1().Namespaces().Get(s.t.Context(), s.Name, metav1.GetOptions{})
	s.must(err)
	out["namespace"] = fmt.Sprint(ns.Labels)
	return out
}

// stocked has template python with pools python (3, Recreate) and node (2,
// OnReplenish), and the pool hidden, none of whose members can be claimed.
func (w *world) stocked(t *testing.T, labels map[string]string) *stage {
	t.Helper()
	s := w.namespace(t, labels)
	s.pool(scenario.Pool{Replicas: 3, Strategy: scenario.Recreate})
	node := scenario.Pool{Name: "node", Template: "python", Replicas: 2}
	s.must(s.Create(t.Context(), builders.MakePool(s.Name, "node").Replicas(2).Obj()))
	s.full(node, "")
	if labels != nil {
		// Where Freshbind enforces, it shows again what somebody hid.
		s.unscheduled("hidden", 2)
		return s
	}
	p := s.pool(scenario.Pool{Name: "hidden", Replicas: 2})
	for _, m := range s.full(p, "") {
		s.patch(upstream.Sandboxes, m.Name, `{"metadata":{"labels":{"`+builders.LabelTemplateRef+`":null}}}`)
	}
	s.eventually("agent-sandbox knows that members are ready", func(context.Context) (string, bool) {
		ready, _, _ := unstructured.NestedInt64(s.get(upstream.SandboxWarmPools, "hidden").Object, "status", "readyReplicas")
		return fmt.Sprint(ready), ready == 2
	})
	return s
}

// unscheduled creates a pool whose members never get ready.
func (s *stage) unscheduled(name string, replicas int64) {
	s.t.Helper()
	template := builders.MakeTemplate(s.Name, name).PodSpec("nobody", "schedulerName")
	s.must(s.Create(s.t.Context(), template.Obj(), builders.MakePool(s.Name, name).Template(name).Replicas(replicas).Obj()))
	s.eventually("members that are not ready", func(ctx context.Context) (string, bool) {
		members, err := s.Members(ctx, name)
		s.must(err)
		return fmt.Sprint(len(members)), len(members) == int(replicas)
	})
}

func TestAdviceToPeople(t *testing.T) {
	w := sharedWorld(t)
	w.enforced(t) // after which the webhooks are known to be in force
	s := w.stocked(t, nil)
	p := s.person()
	before := s.written()

	template := s.get(upstream.SandboxTemplates, "python")
	changed := func(change func(*builders.Template)) string {
		b := builders.TemplateFrom(template)
		change(b)
		return text(t, b.Obj())
	}
	claim := func(change func(*builders.Claim)) string {
		b := builders.MakeClaim(s.Name, "by-hand")
		change(b)
		return text(t, b.Obj())
	}
	orphan := text(t, builders.MakePool(s.Name, "orphan").Template("missing").Obj())
	annotate := func(pool, input string) []string {
		return []string{"annotate", "--dry-run=server", "sandboxwarmpool/" + pool, "freshbind.dev/" + input}
	}
	apply := []string{"apply", "--dry-run=server", "-f", "-"}

	const stale = "Warning: 5 idle members become stale (python 3: Recreate deletes them; node 2: OnReplenish keeps serving them)"
	cases := []struct {
		name  string
		stdin string
		args  []string
		want  []string
		code  int
		// asked is how many calls it costs; kubectl sends one write each.
		asked int
	}{
		{name: "a template's image", stdin: changed(func(b *builders.Template) { b.Image("sandbox:v2") }), args: apply, want: []string{stale}, asked: 1},
		{name: "a template's pod metadata", stdin: changed(func(b *builders.Template) { b.Set("b", "spec", "podTemplate", "metadata", "labels", "a") }), args: apply, asked: 1},
		{name: "a template's own metadata", stdin: changed(func(b *builders.Template) { b.Label("a", "b") }), args: apply},
		{
			name: "a key of ours on pods", stdin: changed(func(b *builders.Template) { b.Set("b", "spec", "podTemplate", "metadata", "labels", stampKey) }), args: apply, code: 1, asked: 1,
			want: []string{`The SandboxTemplate "python" is invalid: spec.podTemplate.metadata.labels[freshbind.dev/template-spec-hash]: Forbidden: keys of freshbind.dev/ are Freshbind's own`},
		},
		{name: "a new template", stdin: text(t, builders.MakeTemplate(s.Name, "new").Obj()), args: apply, asked: 1},
		{name: "a claim that gets a member", stdin: claim(func(*builders.Claim) {}), args: apply, asked: 1},
		{name: "a claim on no pool", stdin: claim(func(b *builders.Claim) { b.Pool("missing") }), args: apply, want: []string{"Warning: this claim waits: pool missing does not exist"}, asked: 1},
		{name: "a claim on a pool without members to take", stdin: claim(func(b *builders.Claim) { b.Pool("hidden") }), args: apply, want: []string{"Warning: this claim will cold-start: pool hidden has no member for it (of 2 idle: 2 hidden)"}, asked: 1},
		{name: "a claim with env that is not allowed", stdin: claim(func(b *builders.Claim) { b.Env("", "A", "b") }), args: apply, want: []string{`Warning: this claim gets no sandbox: envVarsInjectionPolicy "Disallowed" allows no claim to set env`}, asked: 1},
		{name: "an input of a pool", args: annotate("python", "rollout-strategy=Recreate"), asked: 1},
		{name: "a bad input of a pool", args: annotate("python", "rollout-strategy=Rolling"), code: 1, asked: 1, want: []string{`metadata.annotations[freshbind.dev/rollout-strategy]: Unsupported value: "Rolling": supported values: "Recreate", "RollingUpdate", "OnReplenish"`}},
		{name: "an input against the pool's spec", args: annotate("python", "rollout-strategy=RollingUpdate"), code: 1, asked: 1, want: []string{"spec.updateStrategy.type is Recreate, so the platform itself deletes all stale members at once: set that to OnReplenish first"}},
		{name: "an input that is none", args: annotate("python", "strategy=Recreate"), asked: 1, want: []string{"Warning: metadata.annotations[freshbind.dev/strategy] has no effect: it is not one of claims, enforcement,"}},
		{name: "a pool's metadata", args: []string{"label", "--dry-run=server", "sandboxwarmpool/python", "a=b"}},
		{name: "a pool's replicas", args: []string{"patch", "--dry-run=server", "sandboxwarmpool/python", "--type=merge", "-p", `{"spec":{"replicas":9}}`}},
		{name: "a pool scaled", args: []string{"scale", "--dry-run=server", "sandboxwarmpool/python", "--replicas=9"}},
		{name: "a new pool", stdin: orphan, args: apply},
		{name: "a namespace's mode", args: []string{"label", "--dry-run=server", "namespace/" + s.Name, "freshbind.dev/enforcement=enforce"}, asked: 1},
		{name: "a namespace's bad mode", args: []string{"label", "--dry-run=server", "namespace/" + s.Name, "freshbind.dev/enforcement=on"}, code: 1, asked: 1, want: []string{`metadata.labels[freshbind.dev/enforcement]: Unsupported value: "on": supported values: "audit", "enforce"`}},
		{name: "a namespace's other label", args: []string{"label", "--dry-run=server", "namespace/" + s.Name, "a=b"}},
		{name: "a sandbox", args: []string{"label", "--dry-run=server", "sandboxes", "--all", "a=b"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := *p
			p.stage = &stage{s.Namespace, t, w}
			output, code := "", 0
			asked := w.advised(t, func() { output, code = p.run(p.kubectl, tc.stdin, append([]string{"-n", s.Name}, tc.args...)...) })
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			for _, want := range tc.want {
				if !strings.Contains(output, want) {
					t.Errorf("output lacks %q", want)
				}
			}
			if warnings(strings.Split(output, "\n")) != warnings(tc.want) {
				t.Error("more is said than there is to say")
			}
			if asked != tc.asked {
				t.Errorf("Freshbind was asked %d times, want %d", asked, tc.asked)
			}
		})
	}
	if diff := cmp.Diff(before, s.written()); diff != "" {
		t.Errorf("dry runs wrote (-before,+after):\n%s", diff)
	}
}

// warnings counts those that are not kubectl's own, about its first apply.
func warnings(lines []string) int {
	n := 0
	for _, line := range lines {
		if strings.HasPrefix(line, "Warning: ") && !strings.Contains(line, "last-applied-configuration") {
			n++
		}
	}
	return n
}

// Where members carry stamps these are what is counted by.
func TestAdviceByStampsAndForReal(t *testing.T) {
	w := sharedWorld(t)
	s := w.stocked(t, scenario.Enforce())
	p := s.person()
	template := builders.TemplateFrom(s.get(upstream.SandboxTemplates, "python")).Image("sandbox:v2").Obj()
	const want = "Warning: 5 idle members become stale (python 3: Recreate deletes them; node 2: OnReplenish keeps serving them)"
	python := scenario.Pool{Name: "python", Template: "python", Replicas: 3}
	for _, dryRun := range []string{"server", "none"} {
		output, code := "", 0
		w.advised(t, func() {
			s.image(python, "sandbox:v1")
			s.full(python, "sandbox:v1")
			output, code = p.run(p.kubectl, text(t, template), "apply", "--dry-run="+dryRun, "-f", "-")
		})
		if code != 0 || !strings.Contains(output, want) {
			t.Errorf("dry run %s: exit code %d, and the output lacks %q", dryRun, code, want)
		}
	}
	s.full(python, "sandbox:v2")
	// The members of node are stale already, and fresh again under v1.
	for _, image := range []string{"sandbox:v3", "sandbox:v1"} {
		output := ""
		w.advised(t, func() {
			output, _ = p.run(p.kubectl, text(t, builders.TemplateFrom(template).Image(image).Obj()), "apply", "--dry-run=server", "-f", "-")
		})
		if want := "Warning: 3 idle members become stale (python 3: Recreate deletes them)"; !strings.Contains(output, want) {
			t.Errorf("to %s: output lacks %q", image, want)
		}
	}
}

// A bad value that is stored already locks nothing: not the object, and not what
// it stands for.
func TestAdviceLocksNothing(t *testing.T) {
	w := sharedWorld(t)
	w.enforced(t)
	s := w.namespace(t, nil)
	s.must(s.Create(t.Context(), builders.MakePool(s.Name, "python").Replicas(0).Obj()))
	cfg, err := w.Cluster.User("system:serviceaccount:flux-system:flux", "system:masters")
	s.must(err)
	flux, err := dynamic.NewForConfig(cfg)
	s.must(err)
	asked := w.asked(t)
	_, err = flux.Resource(upstream.SandboxWarmPools.WithVersion(w.Version)).Namespace(s.Name).
		Patch(t.Context(), "python", mergePatch, []byte(`{"metadata":{"annotations":{"freshbind.dev/paused":"yes"}}}`), patchOptions)
	s.must(err)
	if got := w.asked(t) - asked; got != 0 {
		t.Errorf("Freshbind was asked %d times about a service account's write", got)
	}
	p := s.person()
	for _, args := range [][]string{
		{"annotate", "sandboxwarmpool/python", "freshbind.dev/max-unavailable=25%"},
		{"patch", "sandboxwarmpool/python", "--type=merge", "-p", `{"spec":{"replicas":1}}`},
		{"annotate", "sandboxwarmpool/python", "freshbind.dev/paused-"},
	} {
		if _, code := p.run(p.kubectl, "", append([]string{"-n", s.Name}, args...)...); code != 0 {
			t.Errorf("%s: exit code %d", args[0], code)
		}
	}
	output, code := "", 0
	w.advised(t, func() {
		s.patch(upstream.SandboxWarmPools, "python", `{"metadata":{"annotations":{"freshbind.dev/paused":null}}}`)
		output, code = p.run(p.kubectl, "", "-n", s.Name, "annotate", "sandboxwarmpool/python", "freshbind.dev/paused=yes")
	})
	if code == 0 {
		t.Errorf("a new bad value is accepted:\n%s", output)
	}
}

// Controllers and nodes are not asked for, nor is anything but what people
// decide: each write below is one that a person would be told of.
func TestAdviceIsForPeopleOnly(t *testing.T) {
	w := sharedWorld(t)
	w.enforced(t)
	s := w.namespace(t, nil)
	cases := map[string]int{"jane": 1, "system:admin": 1, "system:serviceaccount:argocd:argocd": 0, "system:node:n1": 0, "system:kube-controller-manager": 0}
	for _, user := range slices.Sorted(maps.Keys(cases)) {
		cfg, err := w.Cluster.User(user, "system:masters")
		s.must(err)
		client, err := dynamic.NewForConfig(cfg)
		s.must(err)
		asked := w.advised(t, func() {
			claim := builders.MakeClaim(s.Name, "c1").Pool("missing").Obj()
			_, err = client.Resource(upstream.SandboxClaims.WithVersion(w.Version)).Namespace(s.Name).
				Create(t.Context(), claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			s.must(err)
		})
		if asked != cases[user] {
			t.Errorf("%s: Freshbind was asked %d times, want %d", user, asked, cases[user])
		}
	}
	s.must(s.Create(t.Context(), builders.MakeClaim(s.Name, "c1").Pool("missing").Obj()))
	asked := w.asked(t)
	_, err := s.Resource(upstream.SandboxClaims).Patch(t.Context(), "c1", mergePatch, []byte(`{"status":{"sandbox":{"name":"x"}}}`), patchOptions, "status")
	s.must(err)
	s.patch(upstream.SandboxClaims, "c1", `{"metadata":{"annotations":{"a":"b"}}}`)
	if got := w.asked(t) - asked; got != 0 {
		t.Errorf("Freshbind was asked %d times about the status and the metadata of a claim", got)
	}
}
