package app

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/clitest"
)

func TestLists(t *testing.T) {
	short1, short2 := cli.Short(clitest.Hash(t, templateAt("v1"))), cli.Short(clitest.Hash(t, templateAt("v2")))
	const guard = "Guard: not installed (there is no ValidatingWebhookConfiguration freshbind), so nothing is refused.\n"
	header := "POOL   STRATEGY        MODE      READY   UP-TO-DATE   CLAIMABLE   STALE   UNKNOWN   REVISION      STATE         SINCE\n"
	cases := map[string]struct{ args, want string }{
		"status": {"status -n prod", header +
			"a      RollingUpdate   enforce   2/2     1/2          1           1       0         " + short2 + "   Pending 1/2   -\n" +
			"b      RollingUpdate   enforce   1/1     1/1          1           0       0         " + short2 + "   Complete      -\n" + guard},
		"one pool": {"status -n prod a --no-headers", "a   RollingUpdate   enforce   2/2   1/2   1   1   0   " + short2 + "   Pending 1/2   -\n"},
		"labels":   {"status -n prod -l team=red -o name", "sandboxwarmpool.extensions.agents.x-k8s.io/b\n"},
		"nothing":  {"status -n prod -l team=blue", ""},
		"other ns": {"status -n other", ""},
		"all": {"get members -A --no-headers",
			"prod   a-1   a   yes   no    Stale     StaleRevision   " + short1 + "   7   60s\n" +
				"prod   a-2   a   yes   yes   Current   Fresh           " + short2 + "   8   60s\n" +
				"prod   b-1   b   yes   yes   Current   Fresh           " + short2 + "   8   60s\n"},
		"members": {"get members a -n prod",
			"NAME   POOL   READY   CLAIMABLE   CLASS     REASON          REVISION      NUMBER   AGE\n" +
				"a-1    a      yes     no          Stale     StaleRevision   " + short1 + "   7        60s\n" +
				"a-2    a      yes     yes         Current   Fresh           " + short2 + "   8        60s\n"},
		"members, labels": {"get members a -n prod -o name -l test/pick=yes", "sandbox.agents.x-k8s.io/a-2\n"},
		"members, name":   {"get members a -n prod -o name", "sandbox.agents.x-k8s.io/a-1\nsandbox.agents.x-k8s.io/a-2\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, errText, code := newTerminal(t, halfway(t, "enforce")...).run(strings.Fields(tc.args)...)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, errText)
			}
			if diff := cmp.Diff(tc.want, out); diff != "" {
				t.Errorf("output (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestStatusAsJSON(t *testing.T) {
	out, errText, code := newTerminal(t, halfway(t, "enforce")...).run("status", "-n", "prod", "-o", "json")
	var got struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("%v; exit code %d: %s", err, code, errText)
	}
	want := map[string]any{
		"apiVersion": cli.APIVersion, "kind": "PoolStatus",
		"namespace": "prod", "name": "a", "template": "python", "strategy": "RollingUpdate", "mode": "enforce", "replicas": 2.0,
		"readyReplicas": 2.0, "updatedReplicas": 1.0, "updatedReadyReplicas": 1.0, "claimableReplicas": 1.0, "staleReplicas": 1.0,
		"unknownReplicas": 0.0, "unusableReplicas": 0.0, "hiddenReplicas": 0.0, "terminatingReplicas": 0.0,
		"updateRevision": clitest.Hash(t, templateAt("v2")), "revision": 8.0, "state": "Pending", "staleAre": "Replaced",
	}
	if diff := cmp.Diff(want, got.Items[0]); diff != "" {
		t.Errorf("item (-want,+got):\n%s", diff)
	}
}

// Asked for by name a pool is an object, and not a list of one.
func TestStatusOfOnePool(t *testing.T) {
	for format, want := range map[string]string{
		"jsonpath={.kind}/{.name}":                   "PoolStatus/a",
		"go-template={{.apiVersion}} {{.kind}}":      "cli.freshbind.dev/v1alpha1 PoolStatus",
		"custom-columns=POOL:.name,S:.staleReplicas": "POOL   S\na      1\n",
	} {
		out, errText, code := newTerminal(t, halfway(t, "enforce")...).run("status", "a", "-n", "prod", "-o", format)
		if out != want || code != 0 {
			t.Errorf("-o %s: %q (%s), want %q", format, out, errText, want)
		}
	}
}

func TestStatusWatch(t *testing.T) {
	term := newTerminal(t, halfway(t, "enforce")...)
	ctx, cancel := context.WithCancel(t.Context())
	done := term.start(ctx, "status", "-n", "prod", "-w", "--no-headers")
	eventually(t, "the list", func() bool { return strings.Count(term.out.String(), "\n") == 2 })
	// A watch of the fake begins when it is asked for, and shows nothing older: the member is hidden and shown until it is seen.
	key := client.ObjectKey{Namespace: "prod", Name: "a-2"}
	eventually(t, "a change", func() bool {
		member := memberNamed(poolNamed("a"), templateAt("v2"), "a-2").Obj()
		if err := term.cluster.Client.Get(ctx, key, member); err != nil {
			t.Fatal(err)
		}
		labels := member.GetLabels()
		if _, shown := labels[builders.LabelTemplateRef]; shown {
			delete(labels, builders.LabelTemplateRef)
		} else {
			labels[builders.LabelTemplateRef] = "x"
		}
		member.SetLabels(labels)
		if err := term.cluster.Client.Update(ctx, member); err != nil {
			t.Fatal(err)
		}
		return strings.Count(term.out.String(), "\n") > 2
	})
	cancel()
	if end := <-done; end.code != 0 {
		t.Errorf("exit code %d: %s", end.code, end.errText)
	}
	if strings.Count("\n"+term.out.String(), "\nb ") != 1 {
		t.Errorf("a row without news was printed again:\n%s", term.out.String())
	}
}

func TestExplainAsYAML(t *testing.T) {
	out, errText, code := newTerminal(t, halfway(t, "enforce")...).run("explain", "member", "a-1", "-n", "prod", "-o", "yaml")
	if code != 0 || !strings.Contains(out, "reason: PodNotYet\n") || !strings.Contains(out, "claimable: false\n") {
		t.Errorf("exit code %d: %s\n%s", code, errText, out)
	}
}
