package integration

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// Members and their Pods carry the hash that the command line prints for the
// template they were built from: before and after an update, and bound.
func TestStampsAreWhatTheCommandPrints(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate}, func(b *builders.Template) {
		b.Env("MODE", "fast").VolumeClaim("data", "1Gi").Service(true)
	})
	for _, image := range []string{"sandbox:v1", "sandbox:v2"} {
		s.image(p, image)
		want := s.printedHash(s.get(upstream.SandboxTemplates, p.Template))
		for _, m := range s.full(p, image) {
			s.stamped(m.Name, want)
		}
		claim := strings.ReplaceAll(image, ":", "-")
		s.claim(p, claim)
		sandbox, err := s.SandboxOf(t.Context(), claim)
		s.must(err)
		s.stamped(sandbox.GetName(), want)
	}
}

// The recipe of docs/gitops.md: the hash of the file that somebody applied is what the
// cluster shows, whatever the API server has added to it.
func TestTheHashOfAFileIsThatOfItsMembers(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	change := func(b *builders.Template) {
		b.PodSpec([]any{map[string]any{"name": "c", "image": "sandbox:v1", "ports": []any{map[string]any{"containerPort": int64(80)}}}}, "containers")
	}
	p := s.pool(scenario.Pool{Replicas: 1, Strategy: scenario.Recreate}, change)
	member := s.full(p, "")[0].Name
	file := builders.MakeTemplate(s.Name, p.Template).APIVersion(s.Version).Image("sandbox:v1")
	change(file)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	s.must(s.w.Cluster.WriteKubeconfig(s.w.Cluster.Config(), kubeconfig))
	want := ""
	s.eventually("the member's stamp", func(context.Context) (string, bool) {
		want = s.get(upstream.Sandboxes, member).GetLabels()[stampKey]
		return want, want != ""
	})
	if got := s.printedHash(file.Obj(), "--stored", "--kubeconfig="+kubeconfig); got != want {
		t.Errorf("the file's hash is %s, want the member's, %s", got, want)
	}
	if got := s.printedHash(file.Obj(), s.crdFlags()...); got != want {
		t.Errorf("with CRDs from files, the file's hash is %s, want the member's, %s", got, want)
	}
	if got := s.printedHash(file.Obj()); got == want {
		t.Error("the API server has added nothing to the file: the test proves nothing")
	}
}

// crdFlags name the files of the release's CRDs.
func (s *stage) crdFlags() []string {
	s.t.Helper()
	crds, err := upstream.CRDs(s.t.Context(), s.w.Controllers.Release())
	s.must(err)
	var flags []string
	for _, crd := range crds {
		content, err := yaml.Marshal(crd)
		s.must(err)
		path := filepath.Join(s.t.TempDir(), crd.Name)
		s.must(os.WriteFile(path, content, 0o600))
		flags = append(flags, "--crds="+path)
	}
	return flags
}

// A stamp that the CREATE of a Pod carries is replaced by the true one.
func TestAPodsStampAtCreateIsReplaced(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 1, Strategy: scenario.Recreate})
	member := s.get(upstream.Sandboxes, s.full(p, "")[0].Name)
	for name, tc := range map[string]struct{ image, want string }{
		"of its sandbox's content": {"sandbox:v1", s.printedHash(s.get(upstream.SandboxTemplates, p.Template))},
		"of other content":         {"other:v1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var pod corev1.Pod
			made := builders.MakePod(member).Label(stampKey, "v1-0123456789abcdef").Obj()
			s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, &pod))
			pod.Name, pod.UID = "forged", ""
			pod.Spec.Containers[0].Image = tc.image
			got := ""
			s.w.inTime(t, func() {
				stored, err := s.kube().CoreV1().Pods(s.Name).Create(t.Context(), &pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				s.must(err)
				got = stored.Labels[stampKey]
			}, stampHooks...)
			if got == "v1-0123456789abcdef" || tc.want != "" && got != tc.want {
				t.Errorf("stamped %q, want %q", got, tc.want)
			}
		})
	}
}

// stamped checks the stamps of a Sandbox and of its Pod.
func (s *stage) stamped(name, want string) {
	s.t.Helper()
	s.stampIs("sandbox "+name, want, func(context.Context) string { return s.get(upstream.Sandboxes, name).GetLabels()[stampKey] })
	s.stampIs("pod "+name, want, func(ctx context.Context) string {
		pod, err := s.kube().CoreV1().Pods(s.Name).Get(ctx, name, getOptions)
		s.must(err)
		return pod.Labels[stampKey]
	})
}

// stampIs checks a stamp. The hook that sets it fails open: what was born without an
// answer in time has none until the backfill comes.
func (s *stage) stampIs(what, want string, stamp func(context.Context) string) {
	s.t.Helper()
	got := ""
	s.eventually("a stamp on "+what, func(ctx context.Context) (string, bool) {
		got = stamp(ctx)
		return got, got != ""
	})
	if got != want {
		s.t.Errorf("%s is stamped %q, want %s", what, got, want)
	}
}

// printedHash is what `freshbind hash` prints for the template.
func (s *stage) printedHash(template *unstructured.Unstructured, flags ...string) string {
	s.t.Helper()
	document, err := template.MarshalJSON()
	s.must(err)
	var complaint bytes.Buffer
	cmd := exec.CommandContext(s.t.Context(), s.w.Guard.Program(), append([]string{"hash", "-f", "-", "-o", "name"}, flags...)...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(document), &complaint
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("freshbind hash: %v: %s", err, complaint.String())
	}
	return strings.TrimSpace(string(out))
}
