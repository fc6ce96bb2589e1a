package app

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/clitest"
)

func TestSteering(t *testing.T) {
	const stamp = "2026-01-31T12:00:00Z"
	objs := func(t *testing.T) []client.Object {
		paused := poolNamed("c").Annotation(settings.PausedKey, "true")
		return append(halfway(t, "enforce"), paused.Obj())
	}
	prefix := "sandboxwarmpool.extensions.agents.x-k8s.io/"
	cases := map[string]struct {
		args, out, errText string
		code               int
		key                string
		want               map[string]string
	}{
		"pause":                {args: "pause pool/a", out: prefix + "a paused\n", key: settings.PausedKey, want: map[string]string{"a": "true", "b": "", "c": "true"}},
		"pause a paused one":   {args: "pause pool/c", errText: `pool "c" is already paused`, code: 1, key: settings.PausedKey, want: map[string]string{"c": "true"}},
		"pause a template":     {args: "pause template/python", out: prefix + "a paused\n" + prefix + "b paused\n", key: settings.PausedKey, want: map[string]string{"a": "true", "b": "true", "c": "true"}},
		"pause, dry run":       {args: "pause pool/a --dry-run", out: prefix + "a paused (dry run)\n", key: settings.PausedKey, want: map[string]string{"a": ""}},
		"pause, server":        {args: "pause pool/a --dry-run=server", out: prefix + "a paused (server dry run)\n", key: settings.PausedKey, want: map[string]string{"a": ""}},
		"resume":               {args: "resume pool/c", out: prefix + "c resumed\n", key: settings.PausedKey, want: map[string]string{"c": ""}},
		"resume what goes on":  {args: "resume pool/a", errText: `pool "a" is not paused`, code: 1, key: settings.PausedKey, want: map[string]string{"a": ""}},
		"restart":              {args: "restart pool a", out: prefix + "a restarted\n", key: settings.RestartedAtKey, want: map[string]string{"a": stamp, "b": ""}},
		"restart a template":   {args: "restart template/python", out: prefix + "a restarted\n" + prefix + "b restarted\n" + prefix + "c restarted\n", key: settings.RestartedAtKey, want: map[string]string{"a": stamp, "b": stamp, "c": stamp}},
		"restart once, in dry": {args: "restart pool/a --dry-run=client", out: prefix + "a restarted (dry run)\n", key: settings.RestartedAtKey, want: map[string]string{"a": ""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			term := newTerminal(t, objs(t)...)
			out, errText, code := term.run(append([]string{"rollout", "-n", "prod"}, strings.Fields(tc.args)...)...)
			if code != tc.code || errText != tc.errText {
				t.Errorf("error %q with exit code %d, want %q with %d", errText, code, tc.errText, tc.code)
			}
			if diff := cmp.Diff(tc.out, out); diff != "" {
				t.Errorf("output (-want,+got):\n%s", diff)
			}
			for pool, want := range tc.want {
				if got := term.annotation(pool, tc.key); got != want {
					t.Errorf("pool %s has %s: %q, want %q", pool, tc.key, got, want)
				}
			}
		})
	}
}

func TestSteeringWarnsOfModeAudit(t *testing.T) {
	term := newTerminal(t, halfway(t, "audit")...)
	if _, errText, code := term.run("rollout", "restart", "pool/a", "-n", "prod"); code != 0 {
		t.Fatal(errText)
	}
	want := "Warning: pool a is in mode audit, where Freshbind replaces nothing.\n"
	if diff := cmp.Diff(want, term.errOut.String()); diff != "" {
		t.Errorf("error stream (-want,+got):\n%s", diff)
	}
}

func TestRolloutHistoryAndUndo(t *testing.T) {
	h1, h2 := clitest.Hash(t, templateAt("v1")), clitest.Hash(t, templateAt("v2"))
	t1 := "revision 7 (" + cli.Short(h1) + ")"
	const title = "sandboxtemplate.extensions.agents.x-k8s.io/python "
	cases := map[string]struct {
		args, out, errText, image string
		code                      int
	}{
		"history": {args: "history pool/a", image: "v2", out: "" +
			"REVISION   HASH                  IN-FORCE   AGE   CHANGE\n" +
			"7          " + h1 + "   no         60m   -\n" +
			"8          " + h2 + "   yes        60s   containers[name=c].image: \"v1\" -> \"v2\"\n"},
		"history, names": {args: "history template/python -o name", image: "v2",
			out: "controllerrevision.apps/python-" + h1 + "\ncontrollerrevision.apps/python-" + h2 + "\n"},
		"undo":           {args: "undo template/python", image: "v1", out: title + "rolled back to " + t1 + "\n  containers[name=c].image: \"v2\" -> \"v1\"\n"},
		"undo of a pool": {args: "undo pool/b --to-revision=7", image: "v1", out: title + "rolled back to " + t1 + "\n  containers[name=c].image: \"v2\" -> \"v1\"\n"},
		"undo, dry":      {args: "undo template/python --dry-run", image: "v2", out: title + "rolled back to " + t1 + " (dry run)\n  containers[name=c].image: \"v2\" -> \"v1\"\n"},
		"undo, server":   {args: "undo template/python --dry-run=server", image: "v2", out: title + "rolled back to " + t1 + " (server dry run)\n  containers[name=c].image: \"v2\" -> \"v1\"\n"},
		"undo to what is": {args: "undo template/python --to-revision=8", image: "v2",
			out: title + "skipped rollback (revision 8 (" + cli.Short(h2) + ") is in force)\n"},
		"undo to what was not": {args: "undo template/python --to-revision=3", image: "v2", code: 1,
			errText: `template "python": no revision 3 is recorded: rollout history lists them`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			term := newTerminal(t, halfway(t, "enforce")...)
			out, errText, code := term.run(append([]string{"rollout", "-n", "prod"}, strings.Fields(tc.args)...)...)
			if code != tc.code || errText != tc.errText {
				t.Errorf("error %q with exit code %d, want %q with %d", errText, code, tc.errText, tc.code)
			}
			if diff := cmp.Diff(tc.out, out); diff != "" {
				t.Errorf("output (-want,+got):\n%s", diff)
			}
			if got := term.image(); got != tc.image {
				t.Errorf("the template has image %s, want %s", got, tc.image)
			}
		})
	}
}

func TestHistoryOfOneRevision(t *testing.T) {
	out, errText, code := newTerminal(t, halfway(t, "enforce")...).run("rollout", "history", "template/python", "--revision=7", "-n", "prod")
	if code != 0 || !strings.HasPrefix(out, "spec:\n") || !strings.Contains(out, "image: v1") {
		t.Errorf("exit code %d: %s\n%s", code, errText, out)
	}
}

func TestUndoWarnsOfGitOps(t *testing.T) {
	objs := halfway(t, "enforce")
	objs[0] = builders.TemplateFrom(templateAt("v2")).Label("kustomize.toolkit.fluxcd.io/name", "apps").
		Label("kustomize.toolkit.fluxcd.io/namespace", "flux-system").Obj()
	term := newTerminal(t, objs...)
	if _, errText, code := term.run("rollout", "undo", "template/python", "-n", "prod"); code != 0 {
		t.Fatal(errText)
	}
	want := "Warning: template python is managed by Flux (Kustomization flux-system/apps), which will revert this: change it at its source, or suspend the sync first.\n"
	if diff := cmp.Diff(want, term.errOut.String()); diff != "" {
		t.Errorf("error stream (-want,+got):\n%s", diff)
	}
}
