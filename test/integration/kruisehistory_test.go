package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
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
	firstOfSet := w.hash(set)
	w.recorded(set, false, firstOfSet)
	w.changed(set, func(s *unstructured.Unstructured) {
		s.Object["spec"].(map[string]any)["persistentContents"] = []any{"disk"}
	})
	w.recorded(set, false, firstOfSet, w.hash(set))
	w.named(stale, firstOfSet)
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
