package app

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/test/clitest"
)

// boxTerminal is a terminal of a cluster with OpenKruise Agents.
func boxTerminal(t *testing.T, objs ...client.Object) *terminal {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	return &terminal{t: t, cluster: clitest.NewKruise(t, schema.GroupResource{}, interceptor.Funcs{}, objs...)}
}

// boxSet refers to a template, or is one itself for "".
func boxSet(ref string) *unstructured.Unstructured {
	spec := map[string]any{"replicas": int64(2), "template": clitest.BoxPod("box:inline")}
	if ref != "" {
		spec = map[string]any{"replicas": int64(2), "templateRef": map[string]any{"name": ref}}
	}
	return clitest.Box("SandboxSet", "pool", spec)
}

func boxTemplate(name, image string) *unstructured.Unstructured {
	return clitest.Box("SandboxTemplate", name, map[string]any{"template": clitest.BoxPod(image)})
}

// switched has a SandboxSet that referred to template a, or was one itself, and refers to b
// since minutes ago, and that template, which was edited minutes ago; never for 0.
func switched(t *testing.T, from string, since, edited time.Duration) []client.Object {
	t.Helper()
	out := []client.Object{
		namespaceIn("enforce"), boxSet("b"), boxTemplate("a", "box:a"), boxTemplate("b", "box:b2"),
		clitest.BoxRevision(t, boxSet(from), 1, clitest.Now.Add(-2*time.Hour)), clitest.BoxRevision(t, boxSet("b"), 2, clitest.Now.Add(-since)),
	}
	if edited == 0 {
		return append(out, clitest.BoxRevision(t, boxTemplate("b", "box:b2"), 1, clitest.Now.Add(-2*time.Hour)))
	}
	return append(out, clitest.BoxRevision(t, boxTemplate("b", "box:b1"), 1, clitest.Now.Add(-2*time.Hour)),
		clitest.BoxRevision(t, boxTemplate("b", "box:b2"), 2, clitest.Now.Add(-edited)))
}

// without leaves a template out.
func without(objs []client.Object, name string) []client.Object {
	var out []client.Object
	for _, obj := range objs {
		if obj.GetName() != name {
			out = append(out, obj)
		}
	}
	return out
}

// What is undone of a pool that refers to a template is what was changed last: the template, or
// to which one it refers.
func TestUndoOfAPoolThatRefers(t *testing.T) {
	const minute = time.Minute
	const set, template = "sandboxset." + kruise.Group + "/pool", "sandboxtemplate." + kruise.Group + "/b"
	const both = "sandboxset/pool has earlier revisions, and so has sandboxtemplate/b, which it refers to: say which is meant, " +
		"kubectl freshbind rollout undo sandboxset/pool or kubectl freshbind rollout undo sandboxtemplate/b"
	cases := map[string]struct {
		objs         []client.Object
		args         string
		output       string
		errText      string
		code         int
		refers, runs string
	}{
		"only the reference has changed":  {objs: switched(t, "a", minute, 0), args: "pool/pool", output: set + " rolled back to revision 1\n  refers to: SandboxTemplate \"b\" -> SandboxTemplate \"a\"", refers: "a", runs: "box:b2"},
		"the reference was changed last":  {objs: switched(t, "a", minute, time.Hour), args: "pool/pool", output: set + " rolled back to revision 1", refers: "a", runs: "box:b2"},
		"the template was changed last":   {objs: switched(t, "a", time.Hour, minute), args: "pool/pool", output: template + " rolled back to revision 1", refers: "b", runs: "box:b1"},
		"it was its own template":         {objs: switched(t, "", minute, 0), args: "pool/pool", output: set + " rolled back to revision 1\n  refers to: SandboxTemplate \"b\" -> nothing; ", runs: "box:b2"},
		"by the pool's kind":              {objs: switched(t, "a", time.Hour, minute), args: "sbs/pool --to-revision=1", output: set + " rolled back to revision 1", refers: "a", runs: "box:b2"},
		"by the template's kind":          {objs: switched(t, "a", minute, time.Hour), args: "sandboxtemplate/b --to-revision=1", output: template + " rolled back to revision 1", refers: "b", runs: "box:b1"},
		"a dry run":                       {objs: switched(t, "a", minute, 0), args: "pool/pool --dry-run=client", output: set + " rolled back to revision 1", refers: "b", runs: "box:b2"},
		"to what is in force":             {objs: switched(t, "a", minute, 0), args: "sbs/pool --to-revision=2", output: set + " skipped rollback", refers: "b", runs: "box:b2"},
		"a template that is gone by now":  {objs: without(switched(t, "a", minute, 0), "b"), args: "pool/pool", output: set + " rolled back to revision 1", refers: "a"},
		"both within one second":          {objs: switched(t, "a", minute, minute), args: "pool/pool", errText: both, code: cli.ExitUsage, refers: "b", runs: "box:b2"},
		"a number that both have":         {objs: switched(t, "a", time.Hour, minute), args: "pool/pool --to-revision=1", errText: both, code: cli.ExitUsage, refers: "b", runs: "box:b2"},
		"a number where only one has any": {objs: switched(t, "a", minute, 0), args: "pool/pool --to-revision=1", output: set + " rolled back to revision 1", refers: "a", runs: "box:b2"},
		"the one before is gone":          {objs: without(switched(t, "a", minute, 0), "a"), args: "pool/pool", errText: `it refers to SandboxTemplate "a", which does not exist: create that first`, code: 1, refers: "b", runs: "box:b2"},
		"the one before is gone, dry run": {objs: without(switched(t, "a", minute, 0), "a"), args: "pool/pool --dry-run", errText: `it refers to SandboxTemplate "a", which does not exist: create that first`, code: 1, refers: "b", runs: "box:b2"},
		"nothing has been changed at all": {objs: []client.Object{namespaceIn("enforce"), boxSet("b"), boxTemplate("b", "box:b2")}, args: "pool/pool", errText: `template "b": no earlier revision is recorded`, code: 1, refers: "b", runs: "box:b2"},
		"the pool's edit is unrecorded yet": {
			objs: append(without(switched(t, "a", time.Hour, minute), "pool"), boxSet("c"), boxTemplate("c", "box:c")), args: "pool/pool",
			output: set + " rolled back to revision 2", refers: "b", runs: "box:b2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			term := boxTerminal(t, tc.objs...)
			out, errText, code := term.run(append([]string{"rollout", "undo", "-n", "prod"}, strings.Fields(tc.args)...)...)
			if code != tc.code || !strings.Contains(errText, tc.errText) || tc.errText == "" && errText != "" {
				t.Errorf("error %q with exit code %d, want %q with %d", errText, code, tc.errText, tc.code)
			}
			for line := range strings.SplitSeq(tc.output, "\n") {
				if !strings.Contains(out, line) {
					t.Errorf("it does not say %q:\n%s", line, out)
				}
			}
			if diff := cmp.Diff([]string{tc.refers, tc.runs}, []string{term.refers(), term.runs("b")}); diff != "" {
				t.Errorf("the pool refers to, and template b runs (-want,+got):\n%s", diff)
			}
		})
	}
}

// refers is what the pool refers to; "" where it is its own template.
func (c *terminal) refers() string {
	c.t.Helper()
	set, err := c.cluster.Get(c.t.Context(), kruise.Sets, "prod", "pool")
	if err != nil {
		c.t.Fatal(err)
	}
	ref, _, _ := unstructured.NestedString(set.Object, "spec", "templateRef", "name")
	return ref
}

// runs is the image of a template; "" where there is none.
func (c *terminal) runs(name string) string {
	c.t.Helper()
	template, err := c.cluster.Get(c.t.Context(), kruise.Templates, "prod", name)
	if err != nil {
		return ""
	}
	containers, _, _ := unstructured.NestedSlice(template.Object, "spec", "template", "spec", "containers")
	image, _ := containers[0].(map[string]any)["image"].(string)
	return image
}

// Whoever lists the revisions of a pool that refers to a template is told of the others.
func TestHistoryOfAPoolThatRefers(t *testing.T) {
	const note = "These are the revisions of sandboxset/pool, which was changed last. For those of sandboxtemplate/b: kubectl freshbind rollout history sandboxtemplate/b\n"
	for name, tc := range map[string]struct {
		args, note, change string
	}{
		"of both":         {"pool/pool", note, `refers to: SandboxTemplate "a" -> SandboxTemplate "b"`},
		"of one":          {"sandboxset/pool", "", `refers to: SandboxTemplate "a" -> SandboxTemplate "b"`},
		"of the template": {"sandboxtemplate/b", "", `"box:b1" -> "box:b2"`},
	} {
		t.Run(name, func(t *testing.T) {
			term := boxTerminal(t, switched(t, "a", time.Minute, time.Hour)...)
			out, errText, code := term.run("rollout", "history", "-n", "prod", tc.args)
			if code != 0 || !strings.Contains(out, tc.change) {
				t.Errorf("exit code %d, %s; it does not say %q:\n%s", code, errText, tc.change, out)
			}
			if diff := cmp.Diff(tc.note, term.errOut.String()); diff != "" {
				t.Errorf("error stream (-want,+got):\n%s", diff)
			}
		})
	}
}

// Pools that refer to a template of a kind are told from those that are one of its name.
func TestRolloutsByTheKindOfTheTemplate(t *testing.T) {
	namesake := clitest.Box("SandboxSet", "b", map[string]any{"replicas": int64(0), "template": clitest.BoxPod("box:b")})
	for args, want := range map[string]string{
		"template/b":        "sandboxset." + kruise.Group + "/b paused\nsandboxset." + kruise.Group + "/pool paused\n",
		"sandboxtemplate/b": "sandboxset." + kruise.Group + "/pool paused\n",
	} {
		out, errText, code := boxTerminal(t, append(switched(t, "a", time.Minute, 0), namesake)...).run("rollout", "pause", "-n", "prod", args)
		if code != 0 || out != want {
			t.Errorf("%s: exit code %d, %s: it says\n%swant\n%s", args, code, errText, out, want)
		}
	}
}
