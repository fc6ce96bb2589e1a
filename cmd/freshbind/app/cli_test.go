package app

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/clitest"
)

// terminal runs commands against a cluster that does not exist.
type terminal struct {
	t       *testing.T
	cluster *cli.Cluster
	out     syncBuffer
	errOut  syncBuffer
	// screen: what is printed can be changed in place.
	screen *cli.Screen
}

// syncBuffer can be read while a command writes.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newTerminal(t *testing.T, objs ...client.Object) *terminal {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	return &terminal{t: t, cluster: clitest.New(t, interceptor.Funcs{}, objs...)}
}

func (t *terminal) command() *cobra.Command {
	r := env{
		screen:  t.screen,
		streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &t.out, ErrOut: &t.errOut}, program: "kubectl freshbind",
		connect: func(_ *genericclioptions.ConfigFlags, d settings.Defaults, _ string) (*cli.Cluster, error) {
			t.cluster.Defaults = d
			return t.cluster, nil
		},
	}
	release := newRelease(r)
	release.poll, release.pause = time.Millisecond, time.Millisecond
	root := &cobra.Command{Use: programName, SilenceErrors: true, SilenceUsage: true}
	root.SetOut(&t.out)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newStatusCommand(r), newGetCommand(r), newRolloutCommand(r), newExplainCommand(r), release.command())
	nameCommands(root, r.program)
	return root
}

// run returns what was printed, the error and the exit code.
func (t *terminal) run(args ...string) (out, errText string, code int) {
	t.t.Helper()
	return t.runUntil(t.t.Context(), args...)
}

func (t *terminal) runUntil(ctx context.Context, args ...string) (out, errText string, code int) {
	cmd := t.command()
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(ctx); err != nil {
		errText, code = err.Error(), cli.ExitFailed
		var exit *ExitError
		if errors.As(err, &exit) {
			code = exit.Code
		}
	}
	return t.out.String(), errText, code
}

func (t *terminal) annotation(pool, key string) string {
	t.t.Helper()
	obj, err := t.cluster.Get(t.t.Context(), agentsandbox.Pools, "prod", pool)
	if err != nil {
		t.t.Fatal(err)
	}
	return obj.GetAnnotations()[key]
}

func (t *terminal) image() string {
	t.t.Helper()
	obj, err := t.cluster.Get(t.t.Context(), agentsandbox.Templates, "prod", "python")
	if err != nil {
		t.t.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "podTemplate", "spec", "containers")
	image, _ := containers[0].(map[string]any)["image"].(string)
	return image
}

func templateAt(image string) *unstructured.Unstructured {
	return builders.MakeTemplate("prod", "python").Image(image).RV(1).Obj()
}

func poolNamed(name string) *builders.Pool {
	return builders.MakePool("prod", name).Template("python").Replicas(2).Strategy("OnReplenish").
		Annotation(settings.StrategyKey, "RollingUpdate")
}

func memberNamed(p *builders.Pool, template *unstructured.Unstructured, name string) *builders.Sandbox {
	return builders.MakeMember(p.Obj(), template).Name(name).Created(clitest.Now.Add(-time.Minute)).Ready(true)
}

func namespaceIn(mode string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{settings.EnforcementKey: mode}}}
}

// halfway has a pool with one stale and one current member, and another pool
// that is up to date.
func halfway(t *testing.T, mode string) []client.Object {
	t.Helper()
	v1, v2 := templateAt("v1"), templateAt("v2")
	a, b := poolNamed("a"), poolNamed("b").Replicas(1).Label("team", "red")
	return []client.Object{
		v2, a.Obj(), b.Obj(), namespaceIn(mode),
		memberNamed(a, v1, "a-1").Obj(), memberNamed(a, v2, "a-2").Label("test/pick", "yes").Obj(), memberNamed(b, v2, "b-1").Obj(),
		clitest.Revision(t, v1, 7, clitest.Now.Add(-time.Hour)), clitest.Revision(t, v2, 8, clitest.Now.Add(-time.Minute)),
	}
}

func TestCLIUsage(t *testing.T) {
	const kinds = "accepted are pool/NAME and template/NAME"
	cases := map[string]struct {
		args []string
		want string
	}{
		"status: two pools":           {[]string{"status", "a", "b"}, `unexpected argument "b": accepted is the name of one pool (see kubectl freshbind status --help)`},
		"status: unknown flag":        {[]string{"status", "--nope"}, "unknown flag: --nope (see kubectl freshbind status --help)"},
		"status: output":              {[]string{"status", "-o", "xml"}, `-o "xml": accepted are json, yaml, wide, name, jsonpath=, go-template=, custom-columns=`},
		"status: name and -A":         {[]string{"status", "a", "-A"}, "a pool by name and -A or -l exclude each other"},
		"status: selector":            {[]string{"status", "-l", "a in"}, `-l "a in": `},
		"status: mode":                {[]string{"status", "--default-enforcement", "x"}, `--default-enforcement: "x" is not a mode: use enforce or audit`},
		"status: platform":            {[]string{"status", "--platform", "x"}, "--platform x: use agent-sandbox or openkruise-agents"},
		"status: strategy":            {[]string{"status", "--default-rollout-strategy", "x"}, `--default-rollout-strategy: "x" is not a strategy`},
		"get: unknown":                {[]string{"get", "pods"}, `unknown command "pods" for "kubectl freshbind get"`},
		"rollout: unknown":            {[]string{"rollout", "undone"}, `unknown command "undone" for "kubectl freshbind rollout"`},
		"rollout: nothing":            {[]string{"rollout", "status"}, "pool/NAME or template/NAME is required"},
		"rollout: no kind":            {[]string{"rollout", "status", "python"}, `"python": ` + kinds},
		"rollout: another platform's": {[]string{"rollout", "pause", "sbs/a"}, `"sbs" is not a kind of agent-sandbox with its extensions: choose`},
		"history: another platform's": {[]string{"rollout", "history", "sandboxset/a"}, `"sandboxset" is not a kind of agent-sandbox with its extensions: choose`},
		"rollout: no name":            {[]string{"rollout", "status", "pool/"}, `"pool/": ` + kinds},
		"rollout: other kind":         {[]string{"rollout", "undo", "deployment/x"}, `"deployment/x": "deployment" is not a kind that rolls out: ` + kinds},
		"rollout: claims do not":      {[]string{"rollout", "undo", "claim", "x"}, `"claim/x": "claim" is not a kind that rolls out: ` + kinds},
		"rollout status: timeout":     {[]string{"rollout", "status", "pool/a", "--timeout=-1s"}, "--timeout -1s: it must not be negative"},
		"rollout pause: dry run":      {[]string{"rollout", "pause", "pool/a", "--dry-run=yes"}, `--dry-run "yes": accepted are none, client, server`},
		"rollout undo: dry run":       {[]string{"rollout", "undo", "pool/a", "--dry-run=yes"}, `--dry-run "yes": accepted are none, client, server`},
		"rollout undo: revision":      {[]string{"rollout", "undo", "pool/a", "--to-revision=-1"}, "--to-revision -1: it must be the number of a revision, or 0 for the one before"},
		"rollout history: revision":   {[]string{"rollout", "history", "pool/a", "--revision=-1"}, "--revision -1: it must be the number of a revision"},
		"explain: nothing":            {[]string{"explain", "claim"}, "the name of one claim is required"},
		"explain: output":             {[]string{"explain", "claim", "x", "-o", "wide"}, `-o "wide": accepted are json, yaml`},
		"explain: two":                {[]string{"explain", "member", "x", "y"}, `unexpected argument "y"`},
		"rollout: three arguments":    {[]string{"rollout", "status", "pool", "a", "b"}, `unexpected argument "b"`},
		"rollout history: bad output": {[]string{"rollout", "history", "pool/a", "-o", "xml"}, `-o "xml"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, got, code := newTerminal(t, halfway(t, "enforce")...).run(append(tc.args, "-n", "prod")...)
			if code != cli.ExitUsage || !strings.HasPrefix(got, tc.want) {
				t.Errorf("error %q with exit code %d, want %q with %d", got, code, tc.want, cli.ExitUsage)
			}
		})
	}
}

func TestAbsent(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"status":             {[]string{"status", "x"}, `pool "x" does not exist in namespace "prod"`},
		"members":            {[]string{"get", "members", "x"}, `pool "x" does not exist in namespace "prod"`},
		"rollout status":     {[]string{"rollout", "status", "pool/x"}, `pool "x" does not exist in namespace "prod"`},
		"of a template":      {[]string{"rollout", "status", "template/x"}, `template "x" does not exist in namespace "prod"`},
		"history":            {[]string{"rollout", "history", "pool/x"}, `pool "x" does not exist in namespace "prod"`},
		"undo of a template": {[]string{"rollout", "undo", "template/x"}, `template "x" does not exist in namespace "prod"`},
		"pause":              {[]string{"rollout", "pause", "pool/x"}, `pool "x" does not exist in namespace "prod"`},
		"claim":              {[]string{"explain", "claim", "x"}, `claim "x" does not exist in namespace "prod"`},
		"member":             {[]string{"explain", "member", "x"}, `member "x" does not exist in namespace "prod"`},
		"no pool refers":     {[]string{"rollout", "restart", "template/other"}, `no pool in namespace "prod" refers to template "other"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objs := append(halfway(t, "enforce"), builders.MakeTemplate("prod", "other").Obj())
			_, got, code := newTerminal(t, objs...).run(append(tc.args, "-n", "prod")...)
			if code != cli.ExitFailed || got != tc.want {
				t.Errorf("error %q with exit code %d, want %q", got, code, tc.want)
			}
		})
	}
}

// eventually polls for a condition of a command that runs.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Minute)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("never came true: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ended returns a channel with the outcome of a command that runs.
type ended struct {
	errText string
	code    int
}

func (t *terminal) start(ctx context.Context, args ...string) <-chan ended {
	done := make(chan ended, 1)
	go func() {
		_, errText, code := t.runUntil(ctx, args...)
		done <- ended{errText, code}
	}()
	return done
}

func TestCompletion(t *testing.T) {
	cases := map[string]struct{ args, want string }{
		"pools":         {"status", "a\nb\n:4\n"},
		"of members":    {"get members", "a\nb\n:4\n"},
		"subjects":      {"rollout undo", "pool/a\npool/b\ntemplate/python\n:4\n"},
		"members":       {"explain member", "a-1\na-2\nb-1\n:4\n"},
		"after a name":  {"status a", ":4\n"},
		"after subject": {"rollout pause pool/a", ":4\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := append([]string{cobra.ShellCompNoDescRequestCmd}, append(strings.Fields(tc.args), "-n", "prod", "")...)
			out, errText, code := newTerminal(t, halfway(t, "enforce")...).run(args...)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, errText)
			}
			if diff := cmp.Diff(tc.want, out); diff != "" {
				t.Errorf("completions (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestCalledAs(t *testing.T) {
	for file, want := range map[string]string{
		"/usr/bin/freshbind": "freshbind", "kubectl-freshbind": "kubectl freshbind", "/x/kubectl-freshbind.exe": "kubectl freshbind",
		"freshbind.test": "freshbind",
	} {
		if got := calledAs(file); got != want {
			t.Errorf("calledAs(%q) = %q, want %q", file, got, want)
		}
	}
}

func TestHelpNamesThePlugin(t *testing.T) {
	out, _, _ := newTerminal(t).run("rollout", "undo", "--help")
	for _, want := range []string{"kubectl freshbind rollout undo (pool/NAME | template/NAME) [flags]", "  kubectl freshbind rollout undo template/python --dry-run=server"} {
		if !strings.Contains(out, want) {
			t.Errorf("help lacks %q:\n%s", want, out)
		}
	}
}

func TestUnknownCommands(t *testing.T) {
	cases := map[string]struct{ args, want string }{
		"of the program": {"statsu", `unknown command "statsu" for "freshbind" (did you mean status? see freshbind --help)`},
		"of a command":   {"rollout pausse -n prod", `unknown command "pausse" for "freshbind rollout" (did you mean pause? see freshbind rollout --help)`},
		"like no other":  {"frobnicate", `unknown command "frobnicate" for "freshbind" (see freshbind --help)`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cmd := NewCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
			cmd.SetArgs(strings.Fields(tc.args))
			err := cmd.ExecuteContext(t.Context())
			var exit *ExitError
			if !errors.As(err, &exit) || exit.Code != cli.ExitUsage || err.Error() != tc.want {
				t.Errorf("error = %v, want %s with exit code 2", err, tc.want)
			}
		})
	}
}
