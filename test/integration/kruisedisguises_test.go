package integration

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform/kruise"
)

// inTwoWrites: what is refused as one write is refused as two, of which the first takes off
// what says whose it is, or the second gives it without taking it.
func (w *kruiseWorld) inTwoWrites(set *unstructured.Unstructured) {
	w.t.Helper()
	used := w.member(set, "used-and-unmarked")
	w.must(w.take(used, "a-user", ""))
	w.changed(used, func(u *unstructured.Unstructured) {
		u.SetLabels(used.GetLabels())
		u.SetAnnotations(map[string]string{kruiseCleanup: "true"})
		unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "labels", kruiseOwner)
	})
	if err := refused(w.give(used, "a-thief"), "NotAMember: "); err != nil {
		w.t.Errorf("given on: %v", err)
	}
	w.eventually("a policy to keep it from its pool", func() error {
		if err := w.giveBack(set, used, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("the answer is %q, want that it is invalid", fmt.Sprint(err))
		}
		return nil
	})
	w.phase(used, "Recycling")
	if err := refused(w.giveBack(set, used), "MemberUsed: "); err != nil {
		w.t.Errorf("back in its pool: %v", err)
	}
	idle := w.member(set, "idle")
	if err := refused(w.give(idle, "a-user"), "OwnerMismatch: "); err != nil {
		w.t.Errorf("given, and still in its pool: %v", err)
	}
	if err := w.take(idle, "a-user", ""); err != nil {
		w.t.Errorf("a member that nobody was given is refused: %v", err)
	}
}

// give says whose a Sandbox is, and changes nothing else.
func (w *kruiseWorld) give(m *unstructured.Unstructured, owner string) error {
	w.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+kruiseOwner+`":"`+owner+`"}}}`))
	return w.answered(m.GetName(), func() error { return w.c.Patch(w.t.Context(), w.stored(m), patch) })
}

// disguised: labels and annotations of a claim are on its Sandbox as well, and hide nothing.
func (w *kruiseWorld) disguised(before *unstructured.Unstructured, note string) {
	w.t.Helper()
	owner := string(w.claim(kruiseSpace, "disguised", before.GetName()).GetUID())
	for name, disguise := range map[string]func(labels, annotations map[string]string){
		"as a clone":     func(_, annotations map[string]string) { annotations[kruise.Group+"/restore-from"] = "x" },
		"as of no pool":  func(labels, _ map[string]string) { labels[kruise.Group+"/sandbox-pool"] = "" },
		"as of no claim": func(labels, _ map[string]string) { labels[kruise.Group+"/claim-name"] = "" },
	} {
		cold := kruiseCold(before, owner, "disguised")
		labels, annotations := cold.GetLabels(), cold.GetAnnotations()
		disguise(labels, annotations)
		cold.SetLabels(labels)
		cold.SetAnnotations(annotations)
		if err := w.repaired(cold, note, boxAfter, client.DryRunAll); err != nil {
			w.t.Errorf("%s: %v", name, err)
		}
	}
}
