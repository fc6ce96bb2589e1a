package exampleplatform

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// size is how many Boxes a Fleet of these tests has.
const size = 3

// The pools of a platform that only this folder knows are kept current by the controllers
// that are shipped, though it has neither Pods as members nor claims that are objects, and
// can hide nothing.
func TestAThirdPlatformsPoolsAreKept(t *testing.T) {
	w := newWorld(t, Kept())
	rolled := w.fleet(namespace, "rolled", before, map[string]string{
		settings.StrategyKey: string(freshness.RollingUpdate), settings.MaxUnavailableKey: "1",
	})
	left := w.fleet(namespace, "left", before, map[string]string{settings.StrategyKey: string(freshness.OnReplenish)})
	unasked := w.fleet(audited, "unasked", before, nil)
	fleets := []*unstructured.Unstructured{rolled, left, unasked}
	olds := map[types.UID][]string{}
	for _, fleet := range fleets {
		w.eventually("fleet "+fleet.GetName()+" to be full", func() error { return w.full(fleet) })
		olds[fleet.GetUID()] = w.ready(fleet)
	}
	inUse := w.box(rolled, "in-use", before)
	if err := w.put(taken(inUse, "alice", "")); err != nil {
		t.Fatal(err)
	}

	for _, fleet := range fleets {
		w.edit(fleet, after)
	}
	w.eventually("the fleet to be rolled out", func() error {
		if n := len(w.ready(rolled)); n < size-1 {
			t.Fatalf("%d boxes of %d are left, and no more than one may be replaced at once", n, size)
		}
		if err := w.full(rolled); err != nil {
			return err
		}
		return w.complete(rolled)
	})
	for _, name := range w.ready(rolled) {
		box := w.stored(rolled, name)
		if content, err := contentOf(box); err != nil || !content.Equal(w.inForce(rolled)) {
			t.Errorf("box %s is there, and stale: %v", name, err)
		}
	}
	for _, name := range olds[rolled.GetUID()] {
		if box := w.stored(rolled, name); box != nil {
			t.Errorf("box %s is there yet", name)
		}
	}
	for _, fleet := range []*unstructured.Unstructured{left, unasked} {
		for _, name := range olds[fleet.GetUID()] {
			if w.stored(fleet, name) == nil {
				t.Errorf("box %s of fleet %s is gone, and nobody asked for that", name, fleet.GetName())
			}
		}
	}
	if box := w.stored(rolled, inUse.GetName()); box == nil || box.GetDeletionTimestamp() != nil {
		t.Error("a box that somebody has is gone")
	}
	w.deadOnesGo(rolled)
}

// deadOnesGo: a Box that was refused because its Pod has ended is of no use to anybody, and
// is replaced.
func (w *world) deadOnesGo(fleet *unstructured.Unstructured) {
	w.t.Helper()
	name := w.ready(fleet)[0]
	box := w.stored(fleet, name)
	pod := podOf(box, after)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`))
	if err := w.user.Status().Patch(w.t.Context(), pod, patch); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the dead box to be replaced", func() error {
		if box := w.stored(fleet, name); box != nil {
			return fmt.Errorf("it is there; the answer to who wants it is: %w", refusal(w.put(taken(box, "bob", "")), "PodFinished"))
		}
		return w.full(fleet)
	})
}

// full has the Fleet's controller, whom the test plays, make a Box that is missing. It
// returns nil when none is.
func (w *world) full(fleet *unstructured.Unstructured) error {
	w.t.Helper()
	n := len(w.ready(fleet))
	if n >= size {
		return nil
	}
	now := fleet.DeepCopy()
	if err := w.controller.Get(w.t.Context(), client.ObjectKeyFromObject(fleet), now); err != nil {
		return err
	}
	image, _, _ := unstructured.NestedSlice(now.Object, "spec", "box", "podTemplate", "spec", "containers")
	runs := image[0].(map[string]any)["image"].(string)
	box := unborn(now, "", runs)
	box.SetGenerateName(fleet.GetName() + "-")
	if err := w.controller.Create(w.t.Context(), box); err != nil {
		return fmt.Errorf("creating a box: %w", err)
	}
	w.create(podOf(box, runs))
	w.eventually("the status of box "+box.GetName(), func() error {
		box := w.stored(fleet, box.GetName())
		box.Object["status"] = map[string]any{"readySince": time.Now().UTC().Format(time.RFC3339)}
		return w.controller.Status().Update(w.t.Context(), box)
	})
	return fmt.Errorf("%d boxes of %d were ready", n, size)
}

// ready are the names of the Boxes that a Fleet has and somebody could take.
func (w *world) ready(fleet *unstructured.Unstructured) []string {
	w.t.Helper()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(Boxes.WithVersion(Version).GroupVersion().WithKind(boxKind + "List"))
	if err := w.user.List(w.t.Context(), &list, client.InNamespace(fleet.GetNamespace())); err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		box := &list.Items[i]
		if fleetOf(box).UID == string(fleet.GetUID()) && box.GetDeletionTimestamp() == nil && !readySince(box).IsZero() {
			names = append(names, box.GetName())
		}
	}
	return names
}

// complete says what a rollout lacks, by what Freshbind says of it on the Fleet.
func (w *world) complete(fleet *unstructured.Unstructured) error {
	now := fleet.DeepCopy()
	if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(fleet), now); err != nil {
		return err
	}
	annotations := now.GetAnnotations()
	if annotations[settings.RolloutStateKey] != string(freshness.Complete) || annotations[settings.RolloutRevisionKey] != w.inForce(fleet).Hash() {
		return fmt.Errorf("the fleet says: %v", annotations)
	}
	return nil
}

// stored is a Box of a Fleet's namespace as it is now; nil for none.
func (w *world) stored(fleet *unstructured.Unstructured, name string) *unstructured.Unstructured {
	w.t.Helper()
	box := unborn(fleet, name, before)
	err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(box), box)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return box
}

// inForce is what the Boxes of a Fleet are to be built from once it was edited.
func (w *world) inForce(fleet *unstructured.Unstructured) revision.Blueprint {
	w.t.Helper()
	content, err := Objects{}.Render(fleet)
	if err != nil {
		w.t.Fatal(err)
	}
	return content
}
