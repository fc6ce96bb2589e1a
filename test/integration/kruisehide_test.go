package integration

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	undoing "github.com/freshbind/freshbind/internal/release"
	"github.com/freshbind/freshbind/internal/settings"
)

// Whoever looks for a member finds no stale one once it is known, so that no request is
// spent on being refused. Whatever hid one, it is found again: when the edit is undone, by
// the next leader, and by a release when nobody comes back.
func TestKruiseHidesWhatIsStale(t *testing.T) {
	t.Parallel()
	w := startKruise(t)
	left, kept, serving := w.set(kruiseSpace, "left", ""), w.set(kruiseSpace, "kept", ""), w.set(kruiseSpace, "serving", "")
	referring := w.set(kruiseSpace, "referring", "referring")
	sets := []*unstructured.Unstructured{left, kept, serving, referring}
	w.asked(left)
	w.changed(kept, func(s *unstructured.Unstructured) {
		s.SetAnnotations(map[string]string{settings.StrategyKey: string(freshness.Recreate), settings.PausedKey: "true"})
	})
	w.strategy(serving, freshness.OnReplenish)
	old := map[string][]string{}
	for _, set := range sets {
		w.eventually("SandboxSet "+set.GetName()+" to be full", func() error { return w.full(set) })
		old[set.GetName()] = w.idle(set)
		w.finds(set, old[set.GetName()]...)
	}

	for _, set := range sets {
		w.edit(w.builtFrom(set).GetKind(), kruiseSpace, set.GetName())
	}
	w.finds(referring)
	w.undo(w.builtFrom(referring))
	w.finds(referring, old["referring"]...)
	w.edit("SandboxTemplate", kruiseSpace, "referring")
	w.finds(referring)
	w.finds(left)
	w.finds(kept)
	fresh := w.born(left, "fresh")
	w.finds(left, fresh.GetName())
	w.must(w.take(w.at(left, w.found(left)[0]), "a-user", ""))
	for _, set := range sets {
		if now := w.idle(set); !slices.Equal(now, old[set.GetName()]) {
			t.Errorf("%s has %q, want %q: what is hidden is counted", set.GetName(), now, old[set.GetName()])
		}
	}
	w.finds(serving, old["serving"]...)

	w.must(w.guard.Kill())
	w.undo(left)
	w.must(w.guard.Start(t.Context()))
	w.finds(left, old["left"]...)
	w.finds(kept)

	w.edit("SandboxSet", kruiseSpace, left.GetName())
	w.finds(left)
	w.must(w.guard.Kill())
	kind := func(kind string) schema.GroupVersionKind {
		return left.GroupVersionKind().GroupVersion().WithKind(kind)
	}
	r := &undoing.Releaser{Client: w.c, Platforms: []undoing.Platform{
		{Objects: kruise.Objects{}, Kinds: undoing.Kinds{Sandboxes: kind("Sandbox"), Pools: kind("SandboxSet")}},
	}}
	report, err := r.ShowAll(t.Context(), kruiseSpace)
	if err != nil || report.Failed > 0 || report.Shown() != 3*boxes {
		t.Errorf("%d members are shown, want %d: %v %q", report.Shown(), 3*boxes, err, report.Failures)
	}
	for _, set := range sets {
		if found := w.found(set); !slices.Equal(found, old[set.GetName()]) {
			t.Errorf("after a release %q of %s are found, want %q", found, set.GetName(), old[set.GetName()])
		}
	}
	if noted := w.at(left, old["left"][0]).GetAnnotations()[settings.ShownAsKey]; noted != "" {
		t.Errorf("the note %q stays", noted)
	}
	w.must(w.guard.Start(t.Context()))
}

// undo takes back an edit.
func (w *kruiseWorld) undo(set *unstructured.Unstructured) {
	w.t.Helper()
	w.changed(set, func(now *unstructured.Unstructured) {
		now.Object["spec"].(map[string]any)["template"] = boxTemplate(boxBefore)
	})
}

// finds waits until these members of a SandboxSet are found by whoever looks for one.
func (w *kruiseWorld) finds(set *unstructured.Unstructured, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	w.eventually(fmt.Sprintf("%q of %s to be found", want, set.GetName()), func() error {
		if found := w.found(set); !slices.Equal(found, want) {
			return fmt.Errorf("%q are", found)
		}
		return nil
	})
}

// found are the names of the members that who looks for one of a SandboxSet finds, in order:
// by the label alone, as the platform's index does.
func (w *kruiseWorld) found(set *unstructured.Unstructured) []string {
	w.t.Helper()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(set.GroupVersionKind().GroupVersion().WithKind("SandboxList"))
	w.must(w.c.List(w.t.Context(), &list, client.InNamespace(set.GetNamespace()), client.MatchingLabels{
		kruise.Group + "/sandbox-template": set.GetName(), kruise.Group + "/sandbox-claimed": "false",
	}))
	idle := w.idle(set)
	var names []string
	for i := range list.Items {
		if name := list.Items[i].GetName(); slices.Contains(idle, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
