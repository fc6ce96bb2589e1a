package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/webhooks"
)

// A cold start that a late cache had rendered is created as the SandboxSet has it now, with
// what its claim asks for; one that somebody edited is refused.
func TestKruiseRepairs(t *testing.T) {
	t.Parallel()
	w := startKruise(t)
	set := w.set(kruiseSpace, "pool", "")
	w.asked(set)
	before := w.stored(set)
	first := w.hash(set)
	w.recorded(set, true, first)
	w.changed(set, func(s *unstructured.Unstructured) {
		spec := s.Object["spec"].(map[string]any)
		spec["template"], spec["persistentContents"] = boxTemplate(boxAfter), []any{"disk"}
	})
	note := first + " -> " + w.hash(set)
	w.eventually("a cold start to be repaired", func() error { return w.repaired(kruiseCold(before, "a-user", ""), note, boxAfter, client.DryRunAll) })

	asking := w.claim(kruiseSpace, "asking", set.GetName())
	w.changed(asking, func(c *unstructured.Unstructured) {
		c.Object["spec"].(map[string]any)["inplaceUpdate"] = map[string]any{"image": boxAsked}
	})
	for _, tc := range []struct{ owner, claim, runs string }{
		{"a-user", "", boxAfter},
		{string(w.claim(kruiseSpace, "plain", set.GetName()).GetUID()), "plain", boxAfter},
		{string(asking.GetUID()), "asking", boxAsked},
	} {
		cold := kruiseCold(before, tc.owner, tc.claim)
		if tc.runs == boxAsked {
			runImage(cold, boxAsked)
		}
		w.later(func(ctx context.Context) error { return w.c.Delete(ctx, cold) })
		if err := w.repaired(cold, note, tc.runs); err != nil {
			t.Errorf("for %s: %v", tc.owner, err)
		}
		w.waitEvent(cold, "ColdStartRepaired")
	}
	w.disguised(before, note)
	w.notRepaired(before, asking)
	w.referencesAreRepaired()
}

// referencesAreRepaired: a cold start refers to the template that its SandboxSet refers to now.
// In one that does nothing is rewritten for an edit of the template.
func (w *kruiseWorld) referencesAreRepaired() {
	w.t.Helper()
	set := w.set(kruiseSpace, "referring", "one")
	before := w.stored(set)
	first := w.hash(set)
	w.recorded(set, false, first)
	w.set(kruiseSpace, "another", "two")
	refer := func(cold *unstructured.Unstructured, note string, opts ...client.CreateOption) error {
		if err := w.start(cold, opts...); err != nil {
			return err
		}
		ref, _, _ := unstructured.NestedString(cold.Object, "spec", "templateRef", "name")
		_, filled := cold.Object["spec"].(map[string]any)["template"]
		if diff := cmp.Diff([]any{"two", false, note}, []any{ref, filled, cold.GetAnnotations()[settings.RepairedKey]}); diff != "" {
			return fmt.Errorf("reference, template and note (-want,+got):\n%s", diff)
		}
		return nil
	}
	w.changed(set, func(s *unstructured.Unstructured) {
		s.Object["spec"].(map[string]any)["templateRef"] = map[string]any{"name": "two"}
	})
	note := first + " -> " + w.hash(set)
	w.eventually("a reference to be repaired", func() error { return refer(kruiseCold(before, "a-user", ""), note, client.DryRunAll) })
	cold := kruiseCold(before, "a-user", "")
	w.later(func(ctx context.Context) error { return w.c.Delete(ctx, cold) })
	w.must(refer(cold, note))
	w.waitEvent(cold, "ColdStartRepaired")

	template := w.builtFrom(set)
	old := w.hash(template)
	w.edit("SandboxTemplate", kruiseSpace, "two")
	w.recorded(template, true, old, w.hash(template))
	w.must(refer(kruiseCold(w.stored(set), "a-user", ""), "", client.DryRunAll))
}

const boxAsked = "registry.example.com/box:asked"

// kruiseCold is what is created for a claim, or for a user, where the pool has no member.
func kruiseCold(set *unstructured.Unstructured, owner, claim string) *unstructured.Unstructured {
	spec, _, _ := unstructured.NestedMap(set.Object, "spec")
	delete(spec, "replicas")
	m := kruiseObject("Sandbox", set.GetNamespace(), "", spec)
	m.SetLabels(map[string]string{kruise.Group + "/sandbox-pool": set.GetName(), kruise.Group + "/sandbox-template": set.GetName()})
	out := kruiseTaken(m, owner, claim)
	out.SetName("")
	out.SetGenerateName(set.GetName() + "-")
	return out
}

func runImage(box *unstructured.Unstructured, image string) {
	containers, _, _ := unstructured.NestedSlice(box.Object, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["image"] = image
	_ = unstructured.SetNestedSlice(box.Object, containers, "spec", "template", "spec", "containers")
}

// start creates a cold start until it is judged. The hook that repairs it fails open: one
// for which it was too late is refused as it was, and created again.
func (w *kruiseWorld) start(cold *unstructured.Unstructured, opts ...client.CreateOption) (err error) {
	w.t.Helper()
	made := false
	w.inTime(func() {
		if made {
			return
		}
		err = w.answered("a cold start of "+cold.GetGenerateName(), func() error { return w.c.Create(w.t.Context(), cold, opts...) })
		made = err == nil
	}, webhooks.StampHook.Name)
	return err
}

// repaired creates a cold start, whose creator is to go on with what is in force.
func (w *kruiseWorld) repaired(cold *unstructured.Unstructured, note, image string, opts ...client.CreateOption) error {
	w.t.Helper()
	metadata, _, _ := unstructured.NestedMap(cold.Object, "spec", "template", "metadata")
	if err := w.start(cold, opts...); err != nil {
		return err
	}
	containers, _, _ := unstructured.NestedSlice(cold.Object, "spec", "template", "spec", "containers")
	contents, _, _ := unstructured.NestedStringSlice(cold.Object, "spec", "persistentContents")
	after, _, _ := unstructured.NestedMap(cold.Object, "spec", "template", "metadata")
	_, hashed := cold.GetLabels()[kruise.Group+"/template-hash"]
	_, to, _ := strings.Cut(note, " -> ")
	got := []any{containers[0].(map[string]any)["image"], contents, cold.GetAnnotations()[settings.RepairedKey], cold.GetLabels()[settings.StampKey], hashed, after}
	if diff := cmp.Diff([]any{image, []string{"disk"}, note, to, false, metadata}, got); diff != "" {
		return fmt.Errorf("image, contents, note, stamp, hash and metadata (-want,+got):\n%s", diff)
	}
	return nil
}

// waitEvent waits for an event on a Sandbox.
func (w *kruiseWorld) waitEvent(box *unstructured.Unstructured, reason string) {
	w.t.Helper()
	w.eventually("event "+reason, func() error {
		var list eventsv1.EventList
		if err := w.c.List(w.t.Context(), &list, client.InNamespace(box.GetNamespace())); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == reason && e.Regarding.Name == box.GetName() && e.Regarding.UID == box.GetUID() {
				return nil
			}
		}
		return fmt.Errorf("no such event on sandbox %s among %d", box.GetName(), len(list.Items))
	})
}

// notRepaired is what somebody edited, what another claim asks for, what no pool wants
// repaired, and what nobody enforces.
func (w *kruiseWorld) notRepaired(before, asking *unstructured.Unstructured) {
	w.t.Helper()
	cold := func(owner, claim string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		out := kruiseCold(before, owner, claim)
		change(out)
		return out
	}
	asked := func(u *unstructured.Unstructured) { runImage(u, boxAsked) }
	for name, tc := range map[string]struct {
		cold *unstructured.Unstructured
		want string
	}{
		"edited": {cold("a-user", "", func(u *unstructured.Unstructured) {
			u.Object["spec"].(map[string]any)["runtimes"] = []any{map[string]any{"name": "x"}}
		}), "UnknownRevision: "},
		"with an image of the user's":  {cold("a-user", "", asked), "UnknownRevision: "},
		"with another claim's image":   {cold(string(w.claim(kruiseSpace, "modest", before.GetName()).GetUID()), "modest", asked), "UnknownRevision: "},
		"with a namesake of its claim": {cold("uid-of-nobody", asking.GetName(), asked), "ClaimReplaced: "},
	} {
		if err := refused(w.start(tc.cold), tc.want); err != nil {
			w.t.Errorf("%s: %v", name, err)
		}
	}
	w.changed(before, func(s *unstructured.Unstructured) { s.SetAnnotations(map[string]string{settings.RepairKey: "false"}) })
	if err := refused(w.start(kruiseCold(before, "a-user", "")), "StaleRevision: "); err != nil {
		w.t.Errorf("switched off: %v", err)
	}
	quiet := w.set("audited", "quiet", "")
	first := w.hash(quiet)
	w.edit("SandboxSet", "audited", "quiet")
	w.recorded(quiet, false, first, w.hash(quiet))
	late := kruiseCold(quiet, "a-user", "")
	if err := w.start(late, client.DryRunAll); err != nil || late.GetAnnotations()[settings.RepairedKey] != "" {
		w.t.Errorf("in mode audit: %v, %v", late.GetAnnotations(), err)
	}
}
