package app

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/clitest"
)

func TestRolloutStatus(t *testing.T) {
	v1, v2 := templateAt("v1"), templateAt("v2")
	failed := func(p *builders.Pool) *builders.Pool {
		raw, err := json.Marshal(platform.RolloutStatus{UpdateRevision: clitest.Hash(t, v2), ObservedTemplateGeneration: 1})
		if err != nil {
			t.Fatal(err)
		}
		return p.Annotation(settings.AdmitKey, string(freshness.AdmitAny)).Annotation(settings.RolloutStateKey, "Failed").Annotation(settings.RolloutStatusKey, string(raw))
	}
	suspended := func(p *builders.Pool, message string) *builders.Pool {
		raw, err := json.Marshal(platform.RolloutStatus{
			UpdateRevision: clitest.Hash(t, v2), ObservedTemplateGeneration: 1,
			Conditions: []metav1.Condition{{Type: platform.ConditionProgressing, Message: message}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return p.Annotation(settings.RolloutStateKey, "Complete").Annotation(settings.RolloutReasonKey, string(freshness.AttributionSuspended)).
			Annotation(settings.RolloutStatusKey, string(raw))
	}
	complete := []client.Object{v2, poolNamed("b").Replicas(1).Obj(), namespaceIn("enforce"), memberNamed(poolNamed("b"), v2, "b-1").Obj(), clitest.Revision(t, v2, 8, clitest.Now)}
	title := "revision 8 (" + cli.Short(clitest.Hash(t, v2)) + ")"
	cases := map[string]struct {
		objs    []client.Object
		args    string
		code    int
		out     string
		errText string
	}{
		"complete":         {objs: complete, args: "pool/b", out: `pool "b" successfully rolled out: 1 of 1 up to date, ` + title + "\n"},
		"in two arguments": {objs: complete, args: "sandboxwarmpool.extensions.agents.x-k8s.io b", out: `pool "b" successfully rolled out: 1 of 1 up to date, ` + title + "\n"},
		"by template":      {objs: complete, args: "template/python", out: `pool "b" successfully rolled out: 1 of 1 up to date, ` + title + "\n"},
		"not waiting": {
			objs: halfway(t, "enforce"), args: "pool/a --watch=false", code: cli.ExitTimeout, errText: "the rollout is still going on",
			out: `Waiting for rollout of pool "a" to ` + title + ": 1 of 2 up to date, 1 claimable (max-unavailable 25%); the controller has not reported on it yet...\n",
		},
		"timeout": {
			objs: halfway(t, "enforce"), args: "template/python --timeout=1ms", code: cli.ExitTimeout,
			out: `Waiting for rollout of pool "a" to ` + title + ": 1 of 2 up to date, 1 claimable (max-unavailable 25%); the controller has not reported on it yet...\n" +
				`pool "b" successfully rolled out: 1 of 1 up to date, ` + title + "\n",
			errText: `timed out after 1ms. Waiting for rollout of pool "a" to ` + title + ": 1 of 2 up to date, 1 claimable (max-unavailable 25%); the controller has not reported on it yet...",
		},
		"audit": {
			objs: halfway(t, "audit"), args: "pool/a", code: cli.ExitFailed,
			errText: `pool "a" will not complete by itself: 1 of 2 up to date; 1 members are not: mode audit keeps serving it`,
		},
		"failed": {
			objs: append(complete, failed(poolNamed("a")).Obj(), memberNamed(poolNamed("a"), v1, "a-1").Obj()), args: "template/python", code: cli.ExitFailed,
			out:     `pool "b" successfully rolled out: 1 of 1 up to date, ` + title + "\n",
			errText: `pool "a" exceeded its progress deadline (10m): 0 of 2 up to date; 1 older members keep serving. Undo: kubectl freshbind rollout undo template/python`,
		},
		"a message that tells another story": {
			objs: []client.Object{v2, suspended(poolNamed("a"), "x\n\x1b[1Apool successfully rolled out").Obj(), namespaceIn("enforce"), clitest.Revision(t, v2, 8, clitest.Now)},
			args: "pool/a",
			out:  `pool "a" is rolled out as far as can be told: 0 of 2 up to date, 0 equal no known revision: x\n^[[1Apool successfully rolled out` + "\n",
		},
		"paused": {
			objs: append(complete, poolNamed("a").Annotation(settings.PausedKey, "true").Obj(), memberNamed(poolNamed("a"), v1, "a-1").Obj(), clitest.Revision(t, v1, 7, clitest.Now)),
			args: "template/python", code: cli.ExitPaused,
			out:     `pool "b" successfully rolled out: 1 of 1 up to date, ` + title + "\n",
			errText: `pool "a" is paused: 0 of 2 up to date. Resume: kubectl freshbind rollout resume pool/a`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, errText, code := newTerminal(t, tc.objs...).run(append([]string{"rollout", "status", "-n", "prod"}, strings.Fields(tc.args)...)...)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if diff := cmp.Diff(tc.errText, errText); diff != "" {
				t.Errorf("error (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.out, out); diff != "" {
				t.Errorf("output (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestRolloutStatusWaits(t *testing.T) {
	term := newTerminal(t, halfway(t, "enforce")...)
	done := term.start(t.Context(), "rollout", "status", "pool/a", "-n", "prod")
	eventually(t, "a first line", func() bool { return strings.Contains(term.out.String(), "1 of 2 up to date") })
	a, v2 := poolNamed("a"), templateAt("v2")
	// Whether the watches are on already cannot be seen, so the change is made until it is.
	timeout := time.After(10 * time.Minute)
	for {
		select {
		case end := <-done:
			if end.code != 0 || !strings.Contains(term.out.String(), `pool "a" successfully rolled out`) {
				t.Errorf("exit code %d: %s\n%s", end.code, end.errText, term.out.String())
			}
			return
		case <-timeout:
			t.Fatalf("it never ended:\n%s", term.out.String())
		case <-time.After(50 * time.Millisecond):
		}
		if err := client.IgnoreNotFound(term.cluster.Client.Delete(t.Context(), memberNamed(a, templateAt("v1"), "a-1").Obj())); err != nil {
			t.Fatal(err)
		}
		touch(t, term, a, v2)
	}
}

// On a terminal the progress is shown in place, and what came of it below.
func TestRolloutStatusOnAScreen(t *testing.T) {
	v2 := templateAt("v2")
	term := newTerminal(t, v2, poolNamed("b").Replicas(1).Obj(), namespaceIn("enforce"), memberNamed(poolNamed("b"), v2, "b-1").Obj(), clitest.Revision(t, v2, 8, clitest.Now))
	term.screen = cli.ScreenOf(&term.out, func() int { return 80 })
	out, errText, code := term.run("rollout", "status", "pool/b", "-n", "prod")
	want := "b  ████████████████████  1 of 1 up to date, 1 claimable  Complete\n" +
		`pool "b" successfully rolled out: 1 of 1 up to date, revision 8 (` + cli.Short(clitest.Hash(t, v2)) + ")\n"
	if diff := cmp.Diff(want, out); diff != "" || code != 0 || errText != "" {
		t.Errorf("exit code %d, error %q, output (-want,+got):\n%s", code, errText, diff)
	}

	term = newTerminal(t, halfway(t, "enforce")...)
	term.screen = cli.ScreenOf(&term.out, func() int { return 80 })
	out, errText, code = term.run("rollout", "status", "template/python", "-n", "prod", "--timeout=1ms")
	if !strings.HasPrefix(out, "a  ██████████░░░░░░░░░░  1 of 2 up to date, 1 claimable  Pending") || code != cli.ExitTimeout || strings.Contains(out, "successfully") {
		t.Errorf("exit code %d, error %q, output:\n%s", code, errText, out)
	}
	term = newTerminal(t, halfway(t, "enforce")...)
	term.screen = cli.ScreenOf(&term.out, func() int { return 80 })
	out, _, code = term.run("rollout", "status", "pool/a", "-n", "prod", "--watch=false")
	if !strings.HasPrefix(out, "Waiting for rollout") || code != cli.ExitTimeout {
		t.Errorf("not waiting: exit code %d, output:\n%s", code, out)
	}
}

// touch deletes and creates a stale member, so that a watch that began in
// between sees it go, and creates a current one.
func touch(t *testing.T, term *terminal, p *builders.Pool, v2 *unstructured.Unstructured) {
	t.Helper()
	c := term.cluster.Client
	for _, obj := range []client.Object{memberNamed(p, templateAt("v1"), "a-1").Obj(), memberNamed(p, v2, "a-3").Obj()} {
		_ = c.Delete(t.Context(), obj.DeepCopyObject().(client.Object))
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Delete(t.Context(), memberNamed(p, templateAt("v1"), "a-1").Obj()); err != nil {
		t.Fatal(err)
	}
}
