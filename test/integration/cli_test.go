package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// shell runs the program as a person would, as a plugin of kubectl.
type shell struct {
	*stage
	program, kubeconfig string
}

func (s *stage) shell() *shell {
	s.t.Helper()
	plugin := filepath.Join(s.t.TempDir(), "kubectl-freshbind")
	s.must(os.Symlink(s.w.Guard.Program(), plugin))
	return &shell{s, plugin, s.w.Cluster.KubeconfigPath()}
}

// readOnly is a shell of somebody who may look at one namespace, and at nothing else.
func (s *shell) readOnly() *shell {
	s.t.Helper()
	cfg, err := s.w.Cluster.User("reader-"+s.Name, "system:authenticated")
	s.must(err)
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.must(s.w.Cluster.WriteKubeconfig(cfg, path))
	admin, err := client.New(s.w.Cluster.Config(), client.Options{})
	s.must(err)
	meta := metav1.ObjectMeta{Namespace: s.Name, Name: "reader"}
	look := []string{"get", "list", "watch"}
	s.must(admin.Create(s.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "pods"}, Verbs: look},
		{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: look},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: look},
		{APIGroups: []string{builders.GroupCore, builders.GroupExtensions}, Resources: []string{"*"}, Verbs: look},
	}}))
	s.must(admin.Create(s.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reader-" + s.Name}},
	}))
	return &shell{s.stage, s.program, path}
}

// run returns what a command printed, both streams, and its exit code.
func (s *shell) run(args ...string) (string, int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*within)
	defer cancel()
	args = append(args, "--kubeconfig="+s.kubeconfig, "-n", s.Name)
	out, err := exec.CommandContext(ctx, s.program, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	s.t.Logf("$ kubectl freshbind %s\n%s", strings.Join(args[:len(args)-3], " "), out)
	if exit != nil {
		return string(out), exit.ExitCode()
	}
	return string(out), 0
}

// says runs a command that has to end with a code and print all of these.
func (s *shell) says(code int, command string, want ...string) string {
	s.t.Helper()
	out, got := s.run(strings.Fields(command)...)
	if got != code {
		s.t.Fatalf("%s: exit code %d, want %d:\n%s", command, got, code, out)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			s.t.Errorf("%s: does not say %q:\n%s", command, w, out)
		}
	}
	return out
}

// comesToSay runs a command until it prints all of these: what Freshbind records, as
// revisions of templates, it records when it hears of it.
func (s *shell) comesToSay(command string, want ...string) {
	s.t.Helper()
	s.eventually(command+": "+strings.Join(want, ", "), func(context.Context) (string, bool) {
		out, code := s.run(strings.Fields(command)...)
		return out, code == 0 && !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(out, w) })
	})
}

// watch runs a command that goes on until it is interrupted, and returns what it
// has printed, and its end.
func (s *shell) watch(command string) (printed func() string, end func()) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "printed")
	file, err := os.Create(path)
	s.must(err)
	cmd := exec.CommandContext(s.t.Context(), s.program, append(strings.Fields(command), "--kubeconfig="+s.kubeconfig, "-n", s.Name)...)
	cmd.Stdout, cmd.Stderr = file, file
	s.must(cmd.Start())
	printed = func() string {
		raw, err := os.ReadFile(path)
		s.must(err)
		return string(raw)
	}
	return printed, func() {
		s.must(cmd.Process.Signal(os.Interrupt))
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("%s: %v:\n%s", command, err, printed())
		}
		s.must(file.Close())
		s.t.Logf("$ kubectl freshbind %s\n%s", command, printed())
	}
}

// items runs a command that lists, as JSON.
func (s *shell) items(command string) []map[string]any {
	s.t.Helper()
	var list struct {
		Items []map[string]any `json:"items"`
	}
	s.must(json.Unmarshal([]byte(s.says(0, command+" -o json")), &list))
	return list.Items
}

// classes counts members by class.
func (s *shell) classes(pool string) map[string]int {
	s.t.Helper()
	out := map[string]int{}
	for _, m := range s.items("get members " + pool) {
		out[fmt.Sprint(m["class"])]++
	}
	return out
}

func (s *shell) becomes(pool, state string) {
	s.t.Helper()
	s.eventually("pool "+pool+" is "+state, func(context.Context) (string, bool) {
		is := s.says(0, "status "+pool+" -o jsonpath={.state}")
		return is, is == state
	})
}

func TestCLIFollowsAndSteersARollout(t *testing.T) {
	s := sharedWorld(t).enforced(t).shell()
	p := s.pool(scenario.Pool{Replicas: 4, Strategy: scenario.OnReplenish})
	s.patch(upstream.SandboxWarmPools, p.Name, `{"metadata":{"annotations":{"freshbind.dev/rollout-strategy":"RollingUpdate"}}}`)
	s.becomes(p.Name, "Complete")
	s.says(0, "status "+p.Name, "RollingUpdate", "enforce", "4/4", "Complete", "Guard: webhooks are installed")
	if got := s.classes(p.Name); got["Current"] != 4 {
		t.Fatalf("members: %v", got)
	}
	s.comesToSay("explain member "+s.full(p, "sandbox:v1")[0].Name, "runs      template python revision 1 (")

	s.says(0, "rollout pause pool/python", "python paused")
	s.says(1, "rollout pause pool/python", `error: pool "python" is already paused`)
	s.image(p, "sandbox:v2")
	s.becomes(p.Name, "Paused")
	if got := s.classes(p.Name); got["Stale"] != 4 {
		t.Fatalf("members while paused: %v", got)
	}
	s.says(4, "rollout status pool/python", `error: pool "python" is paused: 0 of 4 up to date. Resume: kubectl freshbind rollout resume pool/python`)
	s.comesToSay("explain member "+s.full(p, "sandbox:v1")[0].Name,
		"StaleRevision", `"sandbox:v2" -> "sandbox:v1"`, "runs      template python revision 1 (", "in force  revision 2 (")
	s.says(0, "rollout resume pool/python", "python resumed")
	s.says(0, "rollout status template/python --timeout=10m", `pool "python" successfully rolled out: 4 of 4 up to date, revision 2 (`)
	s.full(p, "sandbox:v2")

	s.says(0, "rollout history template/python", "REVISION", `"sandbox:v1" -> "sandbox:v2"`)
	s.says(0, "rollout undo pool/python --dry-run=server", "rolled back to revision 1 (", "(server dry run)")
	if got := scenario.ImageOf(s.get(upstream.SandboxTemplates, p.Template)); got != "sandbox:v2" {
		t.Errorf("a dry run wrote image %s", got)
	}
	s.says(0, "rollout undo template/python --to-revision=1", `"sandbox:v2" -> "sandbox:v1"`)
	s.says(0, "rollout status pool/python --timeout=10m", "successfully rolled out")
	s.full(p, "sandbox:v1")

	before := map[string]bool{}
	for _, m := range s.full(p, "") {
		before[string(m.UID)] = true
	}
	s.says(0, "rollout restart template/python", "python restarted")
	s.says(0, "rollout status pool/python --timeout=10m", "successfully rolled out")
	for _, m := range s.full(p, "sandbox:v1") {
		if before[string(m.UID)] {
			t.Errorf("member %s outlived the restart", m.Name)
		}
	}
}

func TestCLIExplainsAClaim(t *testing.T) {
	s := sharedWorld(t).enforced(t).shell()
	p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate})
	s.claim(p, "c1")
	s.comesToSay("explain claim c1", "holds sandbox", ": FRESH, bound warm, ready", "runs      template python revision 1 (", "equal in content")
	// Times are stored to the second: what happened in another one can be told apart.
	created := s.get(upstream.SandboxClaims, "c1").GetCreationTimestamp()
	s.eventually("the next second", func(context.Context) (string, bool) {
		return "the same one", time.Since(created.Time) > 1100*time.Millisecond
	})
	s.image(p, "sandbox:v2")
	s.full(p, "sandbox:v2")
	s.comesToSay("explain claim c1", ": FRESH", "runs      template python revision 1 (", " when the claim was created; now revision 2 (")
	s.says(1, "explain claim none", `error: claim "none" does not exist in namespace "`+s.Name+`"`)

	// A bind that is refused is told of with the member it was about.
	s.must(s.Create(t.Context(), s.Claim(scenario.Pool{Name: "nowhere"}, "c2")))
	member, claim := s.full(p, "")[0].Name, s.get(upstream.SandboxClaims, "c2")
	s.eventually("the bind is judged", func(ctx context.Context) (string, bool) {
		_, err := s.w.controllers(t).Resource(agentsandbox.Sandboxes.WithVersion(s.Version)).Namespace(s.Name).Patch(
			ctx, member, types.MergePatchType, owned(t, s.get(upstream.Sandboxes, member), claim), metav1.PatchOptions{})
		if err == nil {
			t.Fatal("a claim of another pool was given a member")
		}
		return err.Error(), !saysNothing(err)
	})
	s.eventually("the refusal is told", func(context.Context) (string, bool) {
		out, _ := s.run("explain", "claim", "c2")
		return out, strings.Contains(out, "Refused (from events") && strings.Contains(out, member)
	})
	s.says(0, "explain claim c2", "holds no sandbox", "pool      nowhere does not exist")
}

// owned is a write that gives a sandbox to a claim.
func owned(t *testing.T, sandbox, claim *unstructured.Unstructured) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": sandbox.GetResourceVersion(),
		"ownerReferences": []metav1.OwnerReference{builders.ControllerRef(claim)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Neither mode audit nor a strategy that keeps stale members hides them from
// who asks, and the exit code says that waiting is in vain.
func TestCLIInModeAudit(t *testing.T) {
	s := sharedWorld(t).namespace(t, nil).shell()
	p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.OnReplenish})
	s.says(0, "rollout status pool/python --timeout=10m", "successfully rolled out")
	printed, end := s.watch("status -w")
	says := func(words string) {
		t.Helper()
		s.eventually("the watch says "+words, func(context.Context) (string, bool) {
			return printed(), strings.Contains(printed(), words)
		})
	}
	says("Complete")
	s.image(p, "sandbox:v2")
	says("Stale by strategy")
	end()
	s.says(0, "status", "OnReplenish", "audit", "0/2", "Stale by strategy")
	s.says(1, "rollout status pool/python", `error: pool "python" will not complete by itself: 0 of 2 up to date; 2 members are not: OnReplenish keeps serving them`)
	s.says(0, "status -A -o wide", s.Name)
	s.says(0, "rollout restart pool/python", "Warning: pool python is in mode audit")
	s.says(2, "rollout status python", "accepted are pool/NAME and template/NAME")
	s.says(0, "rollout undo --help", "kubectl freshbind rollout undo")
	s.says(0, "explain member "+s.full(p, "sandbox:v1")[0].Name, "CLAIMABLE, StaleRevision", "the pool tolerates stale members")
}

// Who may read one namespace needs no more: what else there is to know is left out.
func TestCLIOfSomebodyWhoMayReadOneNamespace(t *testing.T) {
	admin := sharedWorld(t).enforced(t).shell()
	p := admin.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate})
	admin.claim(p, "c1")
	s := admin.readOnly()
	member := s.full(p, "")[0].Name
	s.eventually("the reader's rights are in force", func(context.Context) (string, bool) {
		out, code := s.run("status", p.Name)
		return out, code == 0
	})
	out := s.says(0, "status "+p.Name, "enforce", "2/2")
	if strings.Contains(out, "Guard") {
		t.Errorf("tells of what may not be read:\n%s", out)
	}
	s.says(0, "explain member "+member, "CLAIMABLE, Fresh", "not read  its node")
	s.says(0, "explain claim c1", ": FRESH, bound warm")
	s.says(0, "rollout status template/python", "successfully rolled out")
	s.says(1, "rollout pause pool/python", "forbidden")
	s.says(1, "status -A", "forbidden")
}
