package exampleplatform

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/webhooks"
)

const before, after = "registry.example.com/tool:1", "registry.example.com/tool:2"

// A platform that only this folder knows is guarded as any other, by the manager, the
// webhook configurations and the policies that are shipped.
func TestAThirdPlatform(t *testing.T) {
	w := newWorld(t, Guarded())
	fleet, other := w.fleet(namespace, "tools", before, nil), w.fleet(namespace, "others", before, nil)
	w.guarded(fleet)

	fresh, held := w.box(fleet, "fresh", before), w.box(fleet, "held", before)
	if err := w.put(taken(fresh, "alice", "")); err != nil {
		t.Fatalf("a fresh box is refused: %v", err)
	}
	reasons := map[string]string{}
	refused := func(box *unstructured.Unstructured, as *unstructured.Unstructured, reason string) {
		t.Helper()
		if err := refusal(w.put(as), reason); err != nil {
			t.Errorf("box %s: %v", box.GetName(), err)
		}
		reasons[box.GetName()] = reason
	}
	refused(held, taken(held, "alice", ""), "ClaimHoldsAnother")
	deleted := w.deleted(fleet)
	refused(deleted, taken(deleted, "bob", ""), "MemberTerminating")
	used := w.used(fleet)
	refused(used, taken(used, "bob", ""), "MemberUsed")
	foreign := w.box(other, "foreign", before)
	refused(foreign, taken(foreign, "bob", fleet.GetName()), "PoolMismatch")
	shared := w.box(fleet, "shared", before)
	keeps := taken(shared, "bob", "")
	keeps.SetOwnerReferences(shared.GetOwnerReferences())
	refused(shared, keeps, "OwnerMismatch")
	w.missingPod(fleet, refused)

	stale := w.box(fleet, "stale", before)
	w.edit(fleet, after)
	// The older revision is named as soon as a cache shows it.
	w.eventually("the stale box to be told by its revision", func() error {
		err := w.put(taken(stale, "bob", ""))
		if !apierrors.IsConflict(err) {
			t.Fatalf("a stale box is not refused: %v", err)
		}
		return refusal(err, "StaleRevision")
	})
	refused(stale, taken(stale, "bob", ""), "StaleRevision")
	w.birthsAreRefused(fleet)
	w.undecided(fleet)
	w.events(reasons)
	w.counts(slices.Collect(maps.Values(reasons)))
	w.policies(fresh)
	w.audits()
}

// guarded waits until the API server asks Freshbind, and shows what new Boxes and their
// Pods are stamped with: a stamp that the request carries is replaced.
func (w *world) guarded(fleet *unstructured.Unstructured) {
	w.t.Helper()
	w.recorded(fleet)
	rendered, err := Objects{}.Render(fleet)
	if err != nil {
		w.t.Fatal(err)
	}
	stamped := func(labels map[string]string) error {
		if got := labels[settings.StampKey]; got != rendered.Hash() {
			return fmt.Errorf("it is stamped %q, want %q", got, rendered.Hash())
		}
		return nil
	}
	w.eventually("new boxes to be stamped", func() error {
		box := unborn(fleet, "stamped", before)
		box.SetLabels(map[string]string{settings.StampKey: "v1-forged"})
		if err := w.controller.Create(w.t.Context(), box, client.DryRunAll); err != nil {
			return err
		}
		if got := box.GetAnnotations()[settings.CreatedByKey]; got != settings.CreatedByPool {
			return fmt.Errorf("it was created by %q", got)
		}
		return stamped(box.GetLabels())
	})
	probe := w.box(fleet, "probe", before)
	w.eventually("new pods to be stamped", func() error {
		box := probe.DeepCopy()
		pod := podOf(box, before)
		pod.Name = ""
		pod.GenerateName = "stamped-"
		if err := w.controller.Create(w.t.Context(), pod, client.DryRunAll); err != nil {
			return err
		}
		return stamped(pod.Labels)
	})
	w.eventually("binds to be judged", func() error { return refusal(w.put(taken(probe, "", ""), client.DryRunAll), "ClaimGone") })
}

// recorded waits until the revision in force is part of the Fleet's history.
func (w *world) recorded(fleet *unstructured.Unstructured) {
	w.t.Helper()
	w.eventually("history", func() error {
		var list appsv1.ControllerRevisionList
		err := w.user.List(w.t.Context(), &list, client.InNamespace(fleet.GetNamespace()), client.MatchingLabels{settings.TemplateUIDLabel: string(fleet.GetUID())})
		if err == nil && len(list.Items) == 0 {
			err = errors.New("no revision is recorded")
		}
		return err
	})
}

// deleted is a Box that is there only until somebody has cleaned up.
func (w *world) deleted(fleet *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	box := w.box(fleet, "deleted", before)
	box.SetFinalizers([]string{Group + "/cleaned-up"})
	err := w.controller.Update(w.t.Context(), box)
	if err == nil {
		err = w.controller.Delete(w.t.Context(), box)
	}
	if err == nil {
		err = w.controller.Get(w.t.Context(), client.ObjectKeyFromObject(box), box)
	}
	if err != nil || box.GetDeletionTimestamp() == nil {
		w.t.Fatalf("box %s is not being deleted: %v", box.GetName(), err)
	}
	return box
}

// used is a Box that somebody had, and that is back in its Fleet.
func (w *world) used(fleet *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	box := w.box(fleet, "used", before)
	if err := w.put(taken(box, "carol", "")); err != nil {
		w.t.Fatal(err)
	}
	// Freshbind marks it as used meanwhile.
	w.eventually("box used to be back in its fleet", func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(box), box); err != nil {
			return err
		}
		box.SetOwnerReferences([]metav1.OwnerReference{owner(fleet)})
		return w.user.Update(w.t.Context(), box)
	})
	return box
}

// missingPod: nothing runs yet, and then another's Pod does.
func (w *world) missingPod(fleet *unstructured.Unstructured, refused func(box, as *unstructured.Unstructured, reason string)) {
	w.t.Helper()
	empty := unborn(fleet, "empty", before)
	if err := w.controller.Create(w.t.Context(), empty); err != nil {
		w.t.Fatal(err)
	}
	refused(empty, taken(empty, "bob", ""), "PodNotYet")
	elsewhere := unborn(fleet, "elsewhere", before)
	if err := w.controller.Create(w.t.Context(), elsewhere); err != nil {
		w.t.Fatal(err)
	}
	pod := podOf(empty, before)
	pod.Name = elsewhere.GetName()
	w.create(pod)
	refused(elsewhere, taken(elsewhere, "bob", ""), "PodForeign")
}

// birthsAreRefused: the controller has not seen the edit. A birth that nobody was asked
// about, because the answer was late, is tried again.
func (w *world) birthsAreRefused(fleet *unstructured.Unstructured) {
	w.t.Helper()
	w.eventually("a stale birth to be refused", func() error {
		box := unborn(fleet, "", before)
		box.SetGenerateName("late-")
		return refusal(w.controller.Create(w.t.Context(), box), "StaleRevision")
	})
	if err := w.controller.Create(w.t.Context(), unborn(fleet, "in-time", after)); err != nil {
		w.t.Errorf("a fresh birth is refused: %v", err)
	}
}

// undecided: what cannot be read is no denial, and nothing is bound until it can be.
func (w *world) undecided(fleet *unstructured.Unstructured) {
	w.t.Helper()
	box := w.box(fleet, "undecided", after)
	w.t.Cleanup(func() { w.unreadable.Store(false) })
	w.unreadable.Store(true)
	if err := w.asked(taken(box, "dave", "")); !isUndecided(err) {
		w.t.Errorf("the answer is %v, want 503 and that it could not be decided", err)
	}
	w.unreadable.Store(false)
	if err := w.put(taken(box, "dave", "")); err != nil {
		w.t.Errorf("refused, though everything can be read again: %v", err)
	}
}

// events waits for the reason on each Box, and on the Fleet: there is no claim to look at.
func (w *world) events(reasons map[string]string) {
	w.t.Helper()
	for name, reason := range reasons {
		w.eventually("the event of box "+name, func() error {
			var list eventsv1.EventList
			if err := w.user.List(w.t.Context(), &list, client.InNamespace(namespace)); err != nil {
				return err
			}
			var seen []string
			for _, e := range list.Items {
				is := e.Regarding.Kind + "/" + e.Regarding.Name + ": " + e.Reason
				if seen = append(seen, is); is == boxKind+"/"+name+": "+reason && strings.HasPrefix(e.Note, "claim ") {
					return nil
				}
			}
			return fmt.Errorf("no event says %s, seen: %q", reason, seen)
		})
	}
}

// counts looks for the reasons in metrics.
func (w *world) counts(reasons []string) {
	w.t.Helper()
	body, err := w.get(w.metrics)
	if err != nil {
		w.t.Fatal(err)
	}
	series := func(operation, reason, verdict string) string {
		return fmt.Sprintf(`freshbind_bind_verdicts_total{mode="enforce",operation="%s",platform="fleets",reason="%s",verdict="%s"}`, operation, reason, verdict)
	}
	want := []string{series("bind", "Fresh", "allow"), series("bind", "Undecided", "error"), series("birth", "StaleRevision", "deny")}
	for _, reason := range reasons {
		want = append(want, series("bind", reason, "deny"))
	}
	for _, s := range want {
		if !strings.Contains(body, s) {
			w.t.Errorf("metrics have no %s", s)
		}
	}
}

// policies hold without a call, a moment after they were stored.
func (w *world) policies(box *unstructured.Unstructured) {
	w.t.Helper()
	for what, change := range map[string]func(*unstructured.Unstructured){
		"the name of who had it": func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", ClaimKey)
		},
		"its stamp": func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{settings.StampKey: "v1-forged"}) },
	} {
		w.eventually("a policy to keep "+what, func() error {
			changed := box.DeepCopy()
			if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(box), changed); err != nil {
				return err
			}
			change(changed)
			if err := w.user.Update(w.t.Context(), changed, client.DryRunAll); !apierrors.IsInvalid(err) {
				return fmt.Errorf("the answer is %q, want that it is invalid", fmt.Sprint(err))
			}
			return nil
		})
	}
}

// audits: where nobody said enforce a stale Box is given, and it is said that it would
// be refused. A Fleet may say it for itself.
func (w *world) audits() {
	w.t.Helper()
	lenient, strict := w.fleet(audited, "lenient", before, nil), w.fleet(audited, "strict", before, nil)
	free, kept := w.box(lenient, "free", before), w.box(strict, "kept", before)
	w.edit(lenient, after)
	strict.SetAnnotations(map[string]string{settings.EnforcementKey: string(settings.Enforce)})
	w.edit(strict, after)
	if err := w.put(taken(free, "erin", "")); err != nil {
		w.t.Errorf("refused, though nobody enforces: %v", err)
	}
	if err := w.put(taken(kept, "erin", "")); !apierrors.IsConflict(err) {
		w.t.Errorf("the answer is %v, and the fleet enforces", err)
	}
	// Which fleet it is about cannot be read, but one enforces.
	w.t.Cleanup(func() { w.unreadable.Store(false) })
	w.unreadable.Store(true)
	w.eventually("a cache that shows what the fleet says", func() error {
		err := w.asked(taken(kept, "erin", ""), client.DryRunAll)
		if !isUndecided(err) {
			return fmt.Errorf("the answer is %q, want 503", fmt.Sprint(err))
		}
		return nil
	})
	w.unreadable.Store(false)
	w.eventually("binds to be closed where the fleet enforces", func() error {
		var c admissionregistrationv1.ValidatingWebhookConfiguration
		if err := w.user.Get(w.t.Context(), client.ObjectKey{Name: webhooks.ConfigurationName}, &c); err != nil {
			return err
		}
		var names []string
		for _, h := range c.Webhooks {
			if names = append(names, h.Name); h.Name == webhooks.PoolPrefix+webhooks.BindHook.Name {
				return nil
			}
		}
		return fmt.Errorf("there are %q", names)
	})
}
