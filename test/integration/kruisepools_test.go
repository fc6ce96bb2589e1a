package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
)

// boxes is how many members a SandboxSet has in these tests.
const boxes = 3

// A SandboxSet that names a strategy is rolled out by it, and one that names none is left
// to its own controller. Whatever goes is the Sandbox, never its Pod, and nothing that
// somebody has.
func TestKruisePoolsAreKept(t *testing.T) {
	t.Parallel()
	w := startKruise(t)
	rolled, recreated := w.set(kruiseSpace, "rolled", ""), w.set(kruiseSpace, "recreated", "")
	left, referring := w.set(kruiseSpace, "left", ""), w.set(kruiseSpace, "referring", "referring")
	w.asked(rolled)
	w.strategy(rolled, freshness.RollingUpdate)
	w.strategy(recreated, freshness.Recreate)
	w.strategy(referring, freshness.Recreate)
	sets := []*unstructured.Unstructured{rolled, recreated, left, referring}
	olds := map[string][]string{}
	for _, set := range sets {
		w.eventually("SandboxSet "+set.GetName()+" to be full", func() error { return w.full(set) })
		olds[set.GetName()] = w.idle(set)
	}
	inUse := w.born(rolled, "in-use")
	w.must(w.take(inUse, "a-user", ""))

	for _, set := range []*unstructured.Unstructured{rolled, recreated, left} {
		w.edit("SandboxSet", kruiseSpace, set.GetName())
	}
	w.edit("SandboxTemplate", kruiseSpace, "referring")
	w.eventually("the rollout of rolled", func() error {
		if n := len(w.idle(rolled)); n < boxes-1 {
			t.Fatalf("%d members of %d are left, and no more than one may be replaced at once", n, boxes)
		}
		if err := w.full(rolled); err != nil {
			return err
		}
		return w.rolledOut(rolled)
	})
	for _, set := range []*unstructured.Unstructured{recreated, referring} {
		w.eventually("the rollout of "+set.GetName(), func() error {
			if err := w.full(set); err != nil {
				return err
			}
			return w.rolledOut(set)
		})
	}
	for _, set := range []*unstructured.Unstructured{rolled, recreated, referring} {
		for _, name := range olds[set.GetName()] {
			if slices.Contains(w.idle(set), name) {
				t.Errorf("member %s of %s is there yet", name, set.GetName())
			}
		}
		if err := w.take(w.at(set, w.idle(set)[0]), "b-user", ""); err != nil {
			t.Errorf("a fresh member is refused: %v", err)
		}
	}
	if now := w.idle(left); !slices.Equal(now, olds["left"]) {
		t.Errorf("left has %q, want %q: nobody asked for anything else", now, olds["left"])
	}
	if w.stored(inUse).GetDeletionTimestamp() != nil {
		t.Error("a sandbox that somebody has is being deleted")
	}
	w.uselessOnesGo(rolled)
}

// uselessOnesGo: a member whose Pod has ended, and one whose node leaves.
func (w *kruiseWorld) uselessOnesGo(set *unstructured.Unstructured) {
	w.t.Helper()
	w.eventually("SandboxSet "+set.GetName()+" to be full again", func() error { return w.full(set) })
	dead := w.at(set, w.idle(set)[0])
	w.must(w.c.Status().Patch(w.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: dead.GetNamespace(), Name: dead.GetName()}},
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`))))
	if err := refused(w.take(dead, "a-user", ""), "PodFinished: "); err != nil {
		w.t.Error(err)
	}
	w.gone(dead)

	const name = "leaves"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/drained"}}, Spec: corev1.NodeSpec{Unschedulable: true}}
	w.create(node)
	w.unfinalize(node)
	w.eventually("node "+name+" to be ready", func() error {
		var now corev1.Node
		w.must(w.c.Get(w.t.Context(), client.ObjectKey{Name: name}, &now))
		if !slices.ContainsFunc(now.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			return fmt.Errorf("it is not: %v", now.Status.Conditions)
		}
		return w.c.Patch(w.t.Context(), &now, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`)))
	})
	stays := w.born(set, "on-a-node")
	w.must(w.c.SubResource("binding").Create(w.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: stays.GetNamespace(), Name: stays.GetName()}},
		&corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: name}}))
	w.must(w.c.Delete(w.t.Context(), node))
	w.gone(stays)
}

// gone waits until a Sandbox is.
func (w *kruiseWorld) gone(m *unstructured.Unstructured) {
	w.t.Helper()
	w.eventually("member "+m.GetName()+" to be gone", func() error {
		now := kruiseObject("Sandbox", m.GetNamespace(), m.GetName(), nil)
		err := w.c.Get(w.t.Context(), client.ObjectKeyFromObject(m), now)
		if apierrors.IsNotFound(err) || err == nil && now.GetUID() != m.GetUID() {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

// strategy annotates a SandboxSet with one, and with the least that can be replaced at once.
func (w *kruiseWorld) strategy(set *unstructured.Unstructured, strategy freshness.Strategy) {
	w.t.Helper()
	w.changed(set, func(s *unstructured.Unstructured) {
		s.SetAnnotations(map[string]string{settings.StrategyKey: string(strategy), settings.MaxUnavailableKey: "1"})
	})
}

// full has the SandboxSet's controller, whom the test plays, make a member that is missing.
// It returns nil when none is.
func (w *kruiseWorld) full(set *unstructured.Unstructured) error {
	w.t.Helper()
	n := len(w.idle(set))
	if n >= boxes {
		return nil
	}
	w.born(set, fmt.Sprintf("%s-%d", set.GetName(), time.Now().UnixNano()))
	return fmt.Errorf("%d members of %d were there", n, boxes)
}

// born is a member as the SandboxSet is now, with its Pod, ready to be taken.
func (w *kruiseWorld) born(set *unstructured.Unstructured, name string) *unstructured.Unstructured {
	w.t.Helper()
	now := w.stored(set)
	m := kruiseMember(now, name)
	w.create(m)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.GetNamespace(), Name: name, OwnerReferences: kruiseOwnedBy(m), Labels: map[string]string{kruise.Group + "/created-by": "sandbox"},
		},
		Spec: w.builds(now),
	}
	w.create(pod)
	w.status(m, map[string]any{
		"phase": "Running", "podInfo": map[string]any{"podUID": string(pod.UID), "podIP": ""},
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}},
	})
	return m
}

// builds is the Pod that members of a SandboxSet have from now on. One that is compared in
// full has nothing that its template has not.
func (w *kruiseWorld) builds(set *unstructured.Unstructured) corev1.PodSpec {
	w.t.Helper()
	from := w.builtFrom(set)
	containers, _, _ := unstructured.NestedSlice(from.Object, "spec", "template", "spec", "containers")
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: containers[0].(map[string]any)["image"].(string)}}}
	if from.GetKind() == set.GetKind() {
		spec.SchedulerName, spec.TerminationGracePeriodSeconds = byHand, ptr.To[int64](0)
	}
	return spec
}

// builtFrom is the SandboxSet itself, or the template that it refers to.
func (w *kruiseWorld) builtFrom(set *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	now := w.stored(set)
	if ref, _, _ := unstructured.NestedString(now.Object, "spec", "templateRef", "name"); ref != "" {
		return w.stored(kruiseObject("SandboxTemplate", set.GetNamespace(), ref, nil))
	}
	return now
}

// idle are the names of the members of a SandboxSet, in order.
func (w *kruiseWorld) idle(set *unstructured.Unstructured) []string {
	w.t.Helper()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(set.GroupVersionKind().GroupVersion().WithKind("SandboxList"))
	w.must(w.c.List(w.t.Context(), &list, client.InNamespace(set.GetNamespace())))
	var names []string
	for i := range list.Items {
		if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.UID == set.GetUID() && list.Items[i].GetDeletionTimestamp() == nil {
			names = append(names, list.Items[i].GetName())
		}
	}
	slices.Sort(names)
	return names
}

// at is a member as it is now.
func (w *kruiseWorld) at(set *unstructured.Unstructured, name string) *unstructured.Unstructured {
	w.t.Helper()
	return w.stored(kruiseObject("Sandbox", set.GetNamespace(), name, nil))
}

// rolledOut says what a rollout lacks, by what Freshbind says of it on the SandboxSet.
func (w *kruiseWorld) rolledOut(set *unstructured.Unstructured) error {
	w.t.Helper()
	annotations := w.stored(set).GetAnnotations()
	if annotations[settings.RolloutStateKey] != string(freshness.Complete) || annotations[settings.RolloutRevisionKey] != w.hash(w.builtFrom(set)) {
		return fmt.Errorf("SandboxSet %s says: %v", set.GetName(), annotations)
	}
	return nil
}
