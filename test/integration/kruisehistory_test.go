package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/fixture"
)

// What a SandboxSet was before is recorded, and gives stale members, births and cold
// starts a name. What a template of the same name was is none of it, and has a history of
// its own.
func TestKruiseHistory(t *testing.T) {
	t.Parallel()
	w := startKruise(t)
	set := w.set(kruiseSpace, "pool", "")
	w.asked(set)
	first := w.hash(set)
	stale := w.member(set, "old")
	w.recorded(set, true, first)
	w.templateHistory(w.set(kruiseSpace, "referring", "pool"), "pool")
	w.edit("SandboxSet", kruiseSpace, "pool")
	w.recorded(set, true, first, w.hash(set))
	w.named(stale, first)
	w.birthsAreRefused(set)

	edited := w.member(w.stored(set), "edited")
	w.changed(edited, func(m *unstructured.Unstructured) {
		m.Object["spec"].(map[string]any)["template"] = boxTemplate("registry.example.com/box:of-nobody")
	})
	if err := refused(w.take(edited, "a-user", ""), "UnknownRevision: "); err != nil {
		t.Error(err)
	}
	w.changed(set, func(s *unstructured.Unstructured) {
		s.Object["spec"].(map[string]any)["template"] = boxTemplate(boxBefore)
	})
	w.eventually("the first revision to be in force again", func() error { return w.take(stale, "a-user", "", client.DryRunAll) })
	w.digestsOnly()
	w.heldToHistory(set)
}

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
		w.told(cold, "ColdStartRepaired")
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
		if err := w.c.Create(w.t.Context(), cold, opts...); err != nil {
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
	w.told(cold, "ColdStartRepaired")

	template := w.builtFrom(set)
	old := w.hash(template)
	w.edit("SandboxTemplate", kruiseSpace, "two")
	w.recorded(template, true, old, w.hash(template))
	w.must(refer(kruiseCold(w.stored(set), "a-user", ""), "", client.DryRunAll))
}

// templateHistory: what a SandboxSet refers to has been something else, and whoever has that
// is refused by its name.
func (w *kruiseWorld) templateHistory(set *unstructured.Unstructured, name string) {
	w.t.Helper()
	template := w.stored(kruiseObject("SandboxTemplate", kruiseSpace, name, nil))
	first := w.hash(template)
	stale := w.member(set, "old-by-reference")
	w.recorded(template, true, first)
	w.must(w.take(stale, "a-user", "", client.DryRunAll))
	w.edit(template.GetKind(), kruiseSpace, name)
	w.recorded(template, true, first, w.hash(template))
	w.named(stale, first)

	snapshot := kruiseObject("SandboxTemplate", kruiseSpace, "of-the-set", map[string]any{"template": boxTemplate(boxBefore)})
	snapshot.SetOwnerReferences(kruiseOwnedBy(set))
	w.create(snapshot)
	w.changed(template, func(s *unstructured.Unstructured) {
		s.Object["spec"].(map[string]any)["template"] = boxTemplate(boxBefore)
	})
	w.eventually("the first revision to be in force again", func() error { return w.take(stale, "a-user", "", client.DryRunAll) })
	w.recorded(snapshot, true)

	// What the SandboxSet says beside its reference has a history, too.
	said := w.hash(set)
	w.recorded(set, false, said)
	w.changed(set, func(s *unstructured.Unstructured) {
		s.Object["spec"].(map[string]any)["persistentContents"] = []any{"disk"}
	})
	w.recorded(set, false, said, w.hash(set))
	w.named(stale, said)
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

// repaired creates a cold start, whose creator is to go on with what is in force.
func (w *kruiseWorld) repaired(cold *unstructured.Unstructured, note, image string, opts ...client.CreateOption) error {
	w.t.Helper()
	metadata, _, _ := unstructured.NestedMap(cold.Object, "spec", "template", "metadata")
	if err := w.c.Create(w.t.Context(), cold, opts...); err != nil {
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

// told waits for an event on a Sandbox.
func (w *kruiseWorld) told(box *unstructured.Unstructured, reason string) {
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
		if err := refused(w.c.Create(w.t.Context(), tc.cold), tc.want); err != nil {
			w.t.Errorf("%s: %v", name, err)
		}
	}
	w.changed(before, func(s *unstructured.Unstructured) { s.SetAnnotations(map[string]string{settings.RepairKey: "false"}) })
	if err := refused(w.c.Create(w.t.Context(), kruiseCold(before, "a-user", "")), "StaleRevision: "); err != nil {
		w.t.Errorf("switched off: %v", err)
	}
	quiet := w.set("audited", "quiet", "")
	first := w.hash(quiet)
	w.edit("SandboxSet", "audited", "quiet")
	w.recorded(quiet, false, first, w.hash(quiet))
	late := kruiseCold(quiet, "a-user", "")
	if err := w.c.Create(w.t.Context(), late, client.DryRunAll); err != nil || late.GetAnnotations()[settings.RepairedKey] != "" {
		w.t.Errorf("in mode audit: %v, %v", late.GetAnnotations(), err)
	}
}

// startKruise has Freshbind guard OpenKruise Agents in one namespace, and watch another.
func startKruise(t *testing.T) *kruiseWorld {
	t.Helper()
	return startKruiseOn(t, 1)
}

// startKruiseOn does so in a cluster of so many nodes.
func startKruiseOn(t *testing.T, nodes int) *kruiseWorld {
	t.Helper()
	w := &kruiseWorld{empty: emptyClusterOf(t, nodes, "--platform-kruise")}
	var err error
	w.c, err = client.New(w.cluster.Config(), client.Options{})
	w.must(err)
	w.serve()
	w.logged("Found a warm-pool system", 1)
	w.ask()
	w.namespace(kruiseSpace, kruiseEnforced)
	w.namespace("audited", nil)
	return w
}

// hash names what a SandboxSet, or a template, has members built from now.
func (w *kruiseWorld) hash(set *unstructured.Unstructured) string {
	w.t.Helper()
	rendered, err := kruise.Objects{}.Render(w.stored(set))
	w.must(err)
	return rendered.Hash()
}

// recorded waits until these are the revisions of a SandboxSet, or of a template, each with
// its values or with digests of them.
func (w *kruiseWorld) recorded(set *unstructured.Unstructured, values bool, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	w.eventually("the revisions of "+set.GetName(), func() error {
		var list appsv1.ControllerRevisionList
		if err := w.c.List(w.t.Context(), &list, client.InNamespace(set.GetNamespace())); err != nil {
			return err
		}
		var got []string
		for _, cr := range list.Items {
			owner := metav1.GetControllerOf(&cr)
			if owner == nil || owner.UID != set.GetUID() {
				continue
			}
			if owner.Kind != set.GetKind() {
				return fmt.Errorf("revision %s is of %v", cr.Name, owner)
			}
			if strings.Contains(string(cr.Data.Raw), "registry.example.com") != values {
				return fmt.Errorf("revision %s tells values, want %t: %s", cr.Name, values, cr.Data.Raw)
			}
			got = append(got, cr.Labels[settings.StampKey])
		}
		if slices.Sort(got); !slices.Equal(want, got) {
			return fmt.Errorf("they are %q, want %q", got, want)
		}
		return nil
	})
}

// named waits until a stale member is refused as what it is.
func (w *kruiseWorld) named(m *unstructured.Unstructured, as string) {
	w.t.Helper()
	w.eventually("a stale member to be named", func() error {
		err := w.take(m, "a-user", "", client.DryRunAll)
		if err := refused(err, "StaleRevision: "); err != nil {
			return err
		}
		if !strings.Contains(err.Error(), "is "+as+", in force is") {
			return fmt.Errorf("the answer is %q, want %s", err.Error(), as)
		}
		return nil
	})
}

// birthsAreRefused of what is known to be older, as from a late cache.
func (w *kruiseWorld) birthsAreRefused(set *unstructured.Unstructured) {
	w.t.Helper()
	born := func(image string) *unstructured.Unstructured {
		m := kruiseObject("Sandbox", set.GetNamespace(), "", map[string]any{"template": boxTemplate(image)})
		m.SetGenerateName(set.GetName() + "-")
		m.SetOwnerReferences(kruiseOwnedBy(set))
		return m
	}
	w.eventually("a stale birth to be refused", func() error {
		err := w.c.Create(w.t.Context(), born(boxBefore), client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "StaleRevision: ") {
			return fmt.Errorf("the answer is %q, want 403 Forbidden with StaleRevision", fmt.Sprint(err))
		}
		return nil
	})
	w.eventually("a fresh birth", func() error { return w.c.Create(w.t.Context(), born(boxAfter), client.DryRunAll) })
}

// digestsOnly are kept where nobody enforces, whatever the SandboxSet says that refers to a
// template of the same name, whose values are kept for it.
func (w *kruiseWorld) digestsOnly() {
	w.t.Helper()
	other := w.set("audited", "other", "quiet")
	w.changed(other, func(s *unstructured.Unstructured) {
		s.SetAnnotations(map[string]string{settings.EnforcementKey: string(settings.Enforce)})
	})
	set := w.set("audited", "quiet", "")
	first := w.hash(set)
	template := w.stored(kruiseObject("SandboxTemplate", "audited", "quiet", nil))
	w.recorded(template, true, w.hash(template))
	m := w.member(set, "old-of-quiet")
	w.edit("SandboxSet", "audited", "quiet")
	w.recorded(set, false, first, w.hash(set))
	if err := w.take(m, "a-user", ""); err != nil {
		w.t.Errorf("refused in mode audit: %v", err)
	}
}

// heldToHistory: whoever has Freshbind's identity writes revisions of templates, and no
// others.
func (w *kruiseWorld) heldToHistory(set *unstructured.Unstructured) {
	w.t.Helper()
	cfg, err := w.cluster.User(fixture.User, "system:serviceaccounts", "system:authenticated")
	w.must(err)
	thief, err := client.New(cfg, client.Options{})
	w.must(err)
	write := func(name string, owners []metav1.OwnerReference) error {
		cr := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: set.GetNamespace(), Name: name, OwnerReferences: owners},
			Data:       runtime.RawExtension{Raw: []byte(`{"digests":{}}`)},
		}
		w.later(func(ctx context.Context) error { return w.c.Delete(ctx, cr) })
		return thief.Create(w.t.Context(), cr)
	}
	if err := write("of-a-set", kruiseOwnedBy(w.stored(set))); err != nil {
		w.t.Errorf("a revision of a SandboxSet is refused: %v", err)
	}
	template := w.stored(kruiseObject("SandboxTemplate", kruiseSpace, "pool", nil))
	if err := write("of-a-template", kruiseOwnedBy(template)); err != nil {
		w.t.Errorf("a revision of a SandboxTemplate is refused: %v", err)
	}
	for name, owners := range map[string][]metav1.OwnerReference{
		"of-nobody":       nil,
		"of-a-daemonset":  {{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "x", UID: "uid-x", Controller: new(bool)}},
		"of-a-set-no-kin": {{APIVersion: "example.com/v1", Kind: "SandboxSet", Name: "x", UID: "uid-x"}},
	} {
		if err := write(name, owners); err == nil || !strings.Contains(err.Error(), "freshbind-own-revisions") {
			w.t.Error(errors.Join(fmt.Errorf("a revision %s is not refused by the policy", name), err))
		}
	}
}
