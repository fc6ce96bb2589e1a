package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/fakekruise"
)

// Of a SandboxSet that refers to a SandboxTemplate commands count members by their Pods, and undo
// what was changed last: the template, or the reference. Each Pod is stamped as what it is built
// from, whatever its Sandbox or the template says by then.
func TestKruiseReferences(t *testing.T) {
	t.Parallel()
	w := startKruise(t)
	w.asked(w.set(kruiseSpace, "probe", ""))
	server := w.doubleOf(0, fakekruise.Options{WithoutRolling: true})
	// The E2B server finds members by the name of their template.
	set := w.set(kruiseSpace, "pool", "pool")
	template := w.stored(kruiseObject("SandboxTemplate", kruiseSpace, "pool", nil))
	first := w.hash(template)
	w.recorded(template, true, first)
	w.eventually("the SandboxSet to be full", func() error { return w.stocked(set) })
	got := w.served(server, fakekruise.Request{Namespace: kruiseSpace, Set: "pool", User: "somebody", OnlyStock: true})
	w.eventually("the SandboxSet to be full again", func() error { return w.stocked(set) })
	w.counted("3,0,0,0,1")

	w.edit("SandboxTemplate", kruiseSpace, "pool")
	second := w.hash(template)
	w.recorded(template, true, first, second)
	w.counted("0,3,0,0,2")
	w.podsAreStamped(got.Sandbox, map[string]string{boxBefore: first, boxAfter: second})
	w.must(w.c.Delete(t.Context(), w.at(set, w.idle(set)[0])))
	w.eventually("a fresh member", func() error { return w.stocked(set) })
	w.counted("1,2,0,0,2")
	w.prints("get members pool -n "+kruiseSpace+" -o jsonpath={.items[*].revision}", "1 1 2")
	w.prints("explain member "+w.idle(set)[0]+" -n "+kruiseSpace, "template pool revision ", "in force  revision 2 (")

	w.prints("rollout undo pool/pool -n "+kruiseSpace, "sandboxtemplate."+kruise.Group+"/pool rolled back to revision 1")
	w.counted("2,1,0,0,3")
	w.referenceIsUndone(set)
}

// referenceIsUndone: what a SandboxSet refers to is put back where that was changed last, and
// somebody has to say what is meant where a number alone does not.
func (w *kruiseWorld) referenceIsUndone(set *unstructured.Unstructured) {
	w.t.Helper()
	w.set(kruiseSpace, "another", "another")
	w.changed(set, func(s *unstructured.Unstructured) {
		s.Object["spec"].(map[string]any)["templateRef"] = map[string]any{"name": "another"}
	})
	const to = `refers to: SandboxTemplate "another" -> SandboxTemplate "pool"`
	w.prints("rollout history sandboxset/pool -n "+kruiseSpace, `refers to: SandboxTemplate "pool" -> SandboxTemplate "another"`)
	w.prints("rollout undo pool/pool -n "+kruiseSpace, "sandboxset."+kruise.Group+"/pool rolled back to revision 1", to)
	if ref, _, _ := unstructured.NestedString(w.stored(set).Object, "spec", "templateRef", "name"); ref != "pool" {
		w.t.Errorf("the SandboxSet refers to %q after an undo", ref)
	}
	w.prints("rollout history sandboxset/pool -n "+kruiseSpace, to)
	out, err := w.command(w.t.Context(), "rollout undo pool/pool --to-revision=2 -n "+kruiseSpace).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "freshbind rollout undo sandboxset/pool or ") {
		w.t.Errorf("an undo to a number that two templates have ends with %v:\n%s", err, out)
	}
}

// stocked is nil when a SandboxSet has all its members, and all are ready.
func (w *kruiseWorld) stocked(set *unstructured.Unstructured) error {
	w.t.Helper()
	if n := len(w.readyOnes(set)); n < boxes {
		return fmt.Errorf("%d members of %d are ready", n, boxes)
	}
	return nil
}

// counted waits until status prints these numbers of the pool: fresh, stale, unknown and unusable
// members, and the revision in force.
func (w *kruiseWorld) counted(want string) {
	w.t.Helper()
	w.prints("status pool -n "+kruiseSpace+
		" -o jsonpath={.updatedReplicas},{.staleReplicas},{.unknownReplicas},{.unusableReplicas},{.revision}", want)
}

// podsAreStamped when they are created, as whoever has the Sandbox would get them after a
// resume, from a cache that shows one image or the other.
func (w *kruiseWorld) podsAreStamped(box *unstructured.Unstructured, want map[string]string) {
	w.t.Helper()
	for image, hash := range want {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: box.GetNamespace(), Name: "resumed", OwnerReferences: kruiseOwnedBy(box)},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
		}
		w.eventually("the Pod of "+image+" to be stamped", func() error {
			now := pod.DeepCopy()
			if err := w.c.Create(w.t.Context(), now, client.DryRunAll); err != nil {
				return err
			}
			if got := now.Labels[settings.StampKey]; got != hash {
				return fmt.Errorf("it is stamped %q, want %q", got, hash)
			}
			return nil
		})
	}
}
