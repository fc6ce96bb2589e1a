package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/fakekruise"
)

// Commands know SandboxSets and SandboxClaims where there is nothing of agent-sandbox: what
// a pool has, why a member can be taken or not, and what a claim got. The auditor names
// stale binds where nobody enforces, and finds none where somebody does.
func TestKruiseCommands(t *testing.T) {
	t.Parallel()
	w := startKruise(t)
	w.asked(w.set(kruiseSpace, "probe", ""))
	server := w.doubleOf(0, fakekruise.Options{WithoutRolling: true})
	sets := map[string]*unstructured.Unstructured{}
	for _, namespace := range []string{kruiseSpace, "audited"} {
		set := w.set(namespace, "pool", "")
		sets[namespace] = set
		w.eventually("SandboxSet "+namespace+" to be full", func() error {
			if n := len(w.readyOnes(set)); n < boxes {
				return fmt.Errorf("%d members of %d are ready", n, boxes)
			}
			return nil
		})
	}
	printed, end := w.watch("audit watch -A")
	w.eventually("the auditor to watch", func() error {
		if text := printed(); !strings.Contains(text, checker.Kruise+" v1alpha1)") {
			return errors.New(text)
		}
		return nil
	})

	w.claim(kruiseSpace, "mine", "pool")
	w.prints("explain claim mine -n "+kruiseSpace, "holds sandbox pool-", "FRESH", "bound warm")
	member := w.readyOnes(sets[kruiseSpace])[0]
	w.prints("status -A", "pool", "3/3", "enforce", "audit")
	w.prints("get members pool -n "+kruiseSpace, member)
	w.prints("explain member "+member+" -n "+kruiseSpace, ": CLAIMABLE")

	w.simulated(sets)
	for namespace := range sets {
		w.edit("SandboxSet", namespace, "pool")
	}
	w.prints("explain member "+member+" -n "+kruiseSpace, "NOT CLAIMABLE", "StaleRevision", boxBefore)
	w.prints("rollout history sbs/pool -n "+kruiseSpace, "2")
	// This takes longer than clocks differ.
	if _, err := server.Create(t.Context(), fakekruise.Request{Namespace: kruiseSpace, Set: "pool", User: "somebody", OnlyStock: true}); err == nil {
		t.Error("somebody got a stale sandbox where binds are enforced")
	}
	w.undone(sets[kruiseSpace])
	w.served(server, fakekruise.Request{Namespace: "audited", Set: "pool", User: "somebody", OnlyStock: true})
	w.eventually("the auditor to name the stale bind", func() error {
		if text := printed(); !strings.Contains(text, "STALE         audited/somebody -> pool-") {
			return errors.New(text)
		}
		return nil
	})
	if text := end(); strings.Contains(text, kruiseSpace+"/") {
		t.Errorf("the auditor finds fault where binds are enforced:\n%s", text)
	}
}

// undone: a command puts back what members were built from, and nothing else, also of a
// template that a SandboxSet of its name refers to.
func (w *kruiseWorld) undone(set *unstructured.Unstructured) {
	w.t.Helper()
	w.changed(set, func(s *unstructured.Unstructured) { s.Object["spec"].(map[string]any)["replicas"] = int64(boxes - 1) })
	w.prints("rollout undo sbs/pool -n "+kruiseSpace, "sandboxset."+kruise.Group+"/pool rolled back to revision 1", boxBefore)
	now := w.stored(set)
	if n, _, _ := unstructured.NestedInt64(now.Object, "spec", "replicas"); boxImage(now) != boxBefore || n != boxes-1 {
		w.t.Errorf("the SandboxSet has %d members of %s after an undo, want %d of %s", n, boxImage(now), boxes-1, boxBefore)
	}

	w.set(kruiseSpace, "both", "both")
	template := w.stored(kruiseObject("SandboxTemplate", kruiseSpace, "both", nil))
	w.recorded(template, true, w.hash(template))
	w.edit("SandboxTemplate", kruiseSpace, "both")
	w.prints("rollout history template/both -n "+kruiseSpace, "2", boxAfter)
	w.prints("rollout undo pool/both -n "+kruiseSpace, "sandboxtemplate."+kruise.Group+"/both rolled back to revision 1")
	if image := boxImage(w.stored(template)); image != boxBefore {
		w.t.Errorf("the template has image %s after an undo, want %s", image, boxBefore)
	}
}

// simulated: commands tell what an edit of SandboxSets would lead to, and write nothing.
func (w *kruiseWorld) simulated(sets map[string]*unstructured.Unstructured) {
	w.t.Helper()
	edited := kruiseObject("SandboxSet", "", "pool", map[string]any{"replicas": int64(boxes), "template": boxTemplate(boxAfter)})
	text, err := yaml.Marshal(edited.Object)
	w.must(err)
	file := filepath.Join(w.t.TempDir(), "set.yaml")
	w.must(os.WriteFile(file, text, 0o600))
	w.prints("simulate -f "+file+" -n "+kruiseSpace, fmt.Sprintf("%d idle members become stale (pool %d: they are left to the platform)", boxes, boxes),
		fmt.Sprintf("containers[name=main].image: %q -> %q", boxBefore, boxAfter), "enforce")
	edited.SetAnnotations(map[string]string{settings.StrategyKey: string(freshness.Recreate)})
	text, err = yaml.Marshal(edited.Object)
	w.must(err)
	w.must(os.WriteFile(file, text, 0o600))
	w.prints("simulate -f "+file+" -n "+kruiseSpace, fmt.Sprintf("(pool %d: Recreate deletes them)", boxes))
	w.prints("simulate -f "+file+" -n audited", fmt.Sprintf("(pool %d: mode audit keeps serving them)", boxes))
	for namespace, set := range sets {
		if image := boxImage(w.stored(set)); image != boxBefore {
			w.t.Errorf("the SandboxSet in %s has image %s: somebody wrote", namespace, image)
		}
	}
}

// prints runs a command until it ends well and prints all of these. What Freshbind
// records it records when it hears of it, and controllers are not at once either.
func (w *kruiseWorld) prints(command string, want ...string) {
	w.t.Helper()
	last := ""
	w.eventually(command, func() error {
		out, err := w.command(w.t.Context(), command).CombinedOutput()
		last = string(out)
		if err != nil {
			return fmt.Errorf("%w:\n%s", err, out)
		}
		for _, text := range want {
			if !strings.Contains(last, text) {
				return fmt.Errorf("it does not say %q:\n%s", text, out)
			}
		}
		return nil
	})
	w.t.Logf("$ freshbind %s\n%s", command, last)
}

func (w *kruiseWorld) command(ctx context.Context, command string) *exec.Cmd {
	return exec.CommandContext(ctx, w.guard.Program(), append(strings.Fields(command), "--kubeconfig="+w.cluster.KubeconfigPath())...)
}

// watch runs a command that goes on until it is interrupted.
func (w *kruiseWorld) watch(command string) (printed, end func() string) {
	w.t.Helper()
	file, err := os.CreateTemp(w.t.TempDir(), "printed")
	w.must(err)
	cmd := w.command(context.WithoutCancel(w.t.Context()), command)
	cmd.Stdout, cmd.Stderr = file, file
	w.must(cmd.Start())
	printed = func() string {
		raw, err := os.ReadFile(file.Name())
		w.must(err)
		return string(raw)
	}
	return printed, func() string {
		w.must(cmd.Process.Signal(os.Interrupt))
		_ = cmd.Wait()
		w.must(file.Close())
		w.t.Logf("$ freshbind %s\n%s", command, printed())
		return printed()
	}
}

// readyOnes are the names of members that somebody can be given.
func (w *kruiseWorld) readyOnes(set *unstructured.Unstructured) []string {
	w.t.Helper()
	var out []string
	for _, name := range w.idle(set) {
		if ip, _, _ := unstructured.NestedString(w.at(set, name).Object, "status", "podInfo", "podIP"); ip != "" {
			out = append(out, name)
		}
	}
	return out
}
