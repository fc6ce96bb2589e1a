package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
)

// The one write that binds a member of OpenKruise Agents passes when the member is fresh,
// and is refused with 409 Conflict, whatever the reason, when it is not.
func TestKruiseBinds(t *testing.T) {
	t.Parallel()
	w := &kruiseWorld{empty: emptyCluster(t, "--platform-kruise")}
	var err error
	w.c, err = client.New(w.cluster.Config(), client.Options{})
	w.must(err)
	w.offByDefault()
	w.logged("Waiting for a warm-pool system", 1)
	w.serve()
	w.logged("Found a warm-pool system", 1)
	w.ask()
	w.namespace(kruiseSpace, kruiseEnforced)
	w.namespace("elsewhere", kruiseEnforced)
	w.namespace("audited", nil)

	set := w.set(kruiseSpace, "pool", "")
	w.asked(set)
	w.freshOnesPass(set)
	for name, tc := range w.bad(set) {
		m := w.member(set, name)
		owner, claim := tc(m)
		if err := refused(w.take(m, owner, claim.name), claim.want+": "); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.duplicatesAreRefused(set)
	w.inTwoWrites(set)
	w.usedOnesAreRefused(set)
	w.references()
	w.staleOnesAreRefused()
	w.lateDeletes(set)
	w.undecided(set)
	w.orphans(set)
}

// offByDefault: nobody has asked for it yet.
func (w *kruiseWorld) offByDefault() {
	w.t.Helper()
	if names := w.known(); len(names) > 0 {
		w.t.Errorf("the API server knows of the platform already: %q", names)
	}
	for _, obj := range w.printed() {
		if strings.Contains(obj.GetName(), "kruise") {
			w.t.Errorf("%s %s is printed, and nobody asked for it", obj.GetKind(), obj.GetName())
		}
	}
}

// asked waits until the API server asks Freshbind about births and binds.
func (w *kruiseWorld) asked(set *unstructured.Unstructured) {
	w.t.Helper()
	rendered, err := kruise.Objects{}.Render(w.stored(set))
	w.must(err)
	w.eventually("new members to be stamped", func() error {
		m := kruiseObject("Sandbox", set.GetNamespace(), "stamped", map[string]any{"template": boxTemplate(boxBefore)})
		m.SetOwnerReferences(kruiseOwnedBy(set))
		if err := w.c.Create(w.t.Context(), m, client.DryRunAll); err != nil {
			return err
		}
		if got := m.GetLabels()[settings.StampKey]; got != rendered.Hash() {
			return fmt.Errorf("it is stamped %q, want %q", got, rendered.Hash())
		}
		return nil
	})
	probe := w.member(set, "probe")
	w.eventually("binds to be judged", func() error { return refused(w.take(probe, "", "", client.DryRunAll), "ClaimGone: ") })
}

// freshOnesPass, for a claim and for a user of E2B, who is there only by a name; and what is
// no bind costs nothing.
func (w *kruiseWorld) freshOnesPass(set *unstructured.Unstructured) {
	w.t.Helper()
	claim := w.claim(kruiseSpace, "first", set.GetName())
	m := w.member(set, "fresh")
	if err := w.take(m, string(claim.GetUID()), "first"); err != nil {
		w.t.Fatalf("a fresh member is refused: %v", err)
	}
	if refs := w.stored(m).GetOwnerReferences(); len(refs) > 0 {
		w.t.Errorf("the bind is not stored: %v", refs)
	}
	w.changed(m, func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["paused"] = true })
	for _, name := range []string{"e2b-1", "e2b-2"} {
		if err := w.take(w.member(set, name), "a-user", ""); err != nil {
			w.t.Errorf("a fresh member is refused to a user: %v", err)
		}
	}
}

type wanted struct{ name, want string }

// bad are members, or claims, with a fault, by the reason that it gives.
func (w *kruiseWorld) bad(set *unstructured.Unstructured) map[string]func(*unstructured.Unstructured) (owner string, claim wanted) {
	pod := func(m *unstructured.Unstructured) *corev1.Pod {
		var pod corev1.Pod
		w.must(w.c.Get(w.t.Context(), client.ObjectKeyFromObject(m), &pod))
		return &pod
	}
	const finalizer = "example.com/cleaned-up"
	return map[string]func(*unstructured.Unstructured) (string, wanted){
		"deleting": func(m *unstructured.Unstructured) (string, wanted) {
			w.changed(m, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{finalizer}) })
			w.unfinalize(m)
			w.must(w.c.Delete(w.t.Context(), m))
			return "a-user", wanted{"", "MemberTerminating"}
		},
		"locked": func(m *unstructured.Unstructured) (string, wanted) {
			w.changed(m, func(u *unstructured.Unstructured) {
				u.SetAnnotations(map[string]string{kruiseOwner: "__manager_scale_down"})
			})
			return "a-user", wanted{"", "MemberTerminating"}
		},
		"pod-deleting": func(m *unstructured.Unstructured) (string, wanted) {
			p := pod(m)
			patch := client.MergeFrom(p.DeepCopy())
			p.Finalizers = []string{finalizer}
			w.must(w.c.Patch(w.t.Context(), p, patch))
			w.unfinalize(p)
			w.must(w.c.Delete(w.t.Context(), p, client.GracePeriodSeconds(0)))
			return "a-user", wanted{"", "PodTerminating"}
		},
		"pod-gone": func(m *unstructured.Unstructured) (string, wanted) {
			w.status(m, map[string]any{"podInfo": map[string]any{"podIP": "10.1.2.3"}})
			w.must(w.c.Delete(w.t.Context(), pod(m), client.GracePeriodSeconds(0)))
			w.eventually("the pod to be gone", func() error {
				err := w.c.Get(w.t.Context(), client.ObjectKeyFromObject(m), &corev1.Pod{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				return errors.Join(errors.New("it is there"), err)
			})
			return "a-user", wanted{"", "PodFinished"}
		},
		"pod-exchanged": func(m *unstructured.Unstructured) (string, wanted) {
			w.status(m, map[string]any{"podInfo": map[string]any{"podUID": "another"}})
			return "a-user", wanted{"", "PodForeign"}
		},
		"from-elsewhere": func(*unstructured.Unstructured) (string, wanted) {
			claim := w.claim("elsewhere", "far", set.GetName())
			return string(claim.GetUID()), wanted{"far", "ClaimGone"}
		},
		"of-another-pool": func(*unstructured.Unstructured) (string, wanted) {
			claim := w.claim(kruiseSpace, "choosy", "another")
			return string(claim.GetUID()), wanted{"choosy", "PoolMismatch"}
		},
	}
}

// unfinalize lets go of an object when the test ends.
func (w *kruiseWorld) unfinalize(obj client.Object) {
	w.later(func(ctx context.Context) error {
		return w.c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
}

// duplicatesAreRefused: a claim gets as many as it wants, and nobody gets what another has.
func (w *kruiseWorld) duplicatesAreRefused(set *unstructured.Unstructured) {
	w.t.Helper()
	claim := w.claim(kruiseSpace, "greedy", set.GetName())
	owner := string(claim.GetUID())
	one, two := w.member(set, "one"), w.member(set, "two")
	w.must(w.take(one, owner, "greedy"))
	if err := refused(w.take(two, owner, "greedy"), "ClaimHoldsAnother: "); err != nil {
		w.t.Error(err)
	}
	if err := refused(w.take(one, "a-thief", ""), "ClaimReplaced: "); err != nil {
		w.t.Error(err)
	}
	held := w.member(set, "held")
	w.must(w.take(held, "a-user", ""))
	if err := refused(w.take(held, "a-thief", ""), "MemberClaimed: "); err != nil {
		w.t.Error(err)
	}
	w.changed(claim, func(both *unstructured.Unstructured) { both.Object["spec"].(map[string]any)["replicas"] = int64(2) })
	if err := w.take(two, owner, "greedy"); err != nil {
		w.t.Errorf("refused, though the claim wants two: %v", err)
	}
}

// usedOnesAreRefused: one goes back only to a pool that recycles, when it is as that makes
// them, and once who had it has let go. In any other case it is of use to nobody, and goes.
func (w *kruiseWorld) usedOnesAreRefused(set *unstructured.Unstructured) {
	w.t.Helper()
	used := func(name string) *unstructured.Unstructured {
		m := w.member(set, name)
		w.must(w.take(m, "a-user", ""))
		w.changed(m, func(u *unstructured.Unstructured) {
			annotations := u.GetAnnotations()
			annotations[kruiseCleanup] = "true"
			u.SetAnnotations(annotations)
		})
		return m
	}
	m := used("used")
	w.eventually("a policy to keep what somebody has from its pool", func() error {
		if err := w.giveBack(set, m, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("the answer is %q, want that it is invalid", fmt.Sprint(err))
		}
		return nil
	})
	w.phase(m, "Recycling")
	if err := refused(w.giveBack(set, m), "MemberUsed: "); err != nil {
		w.t.Error(err)
	}
	w.gone(m)

	w.changed(set, func(pool *unstructured.Unstructured) { pool.SetAnnotations(map[string]string{kruiseCleanup: "true"}) })
	changed := used("used-and-changed")
	w.phase(changed, "Recycling")
	w.changed(changed, func(u *unstructured.Unstructured) {
		u.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"] = boxTemplate(boxAfter)["spec"]
	})
	if err := refused(w.giveBack(set, changed), "UnknownRevision: "); err != nil {
		w.t.Error(err)
	}
	w.gone(changed)

	m = used("used-again")
	w.phase(m, "Recycling")
	if err := w.giveBack(set, m); err != nil {
		w.t.Errorf("refused, though the pool recycles: %v", err)
	}
	if err := refused(w.take(m, "b-user", "", client.DryRunAll), "MemberUsed: "); err != nil {
		w.t.Errorf("while it is on its way back: %v", err)
	}
	w.phase(m, "Running")
	if err := w.take(m, "b-user", ""); err != nil {
		w.t.Errorf("refused, though the pool recycles: %v", err)
	}
	if err := w.giveBack(set, m); !apierrors.IsInvalid(err) {
		w.t.Errorf("the recycler, which is late, takes it from the next user: the answer is %q", fmt.Sprint(err))
	}
	if now := w.stored(m); now.GetDeletionTimestamp() != nil || len(now.GetOwnerReferences()) > 0 {
		w.t.Errorf("the next user has lost the sandbox: %v", now.GetOwnerReferences())
	}
}

// giveBack is the write with which the recycler brings a used Sandbox back.
func (w *kruiseWorld) giveBack(set, m *unstructured.Unstructured, opts ...client.UpdateOption) error {
	w.t.Helper()
	return w.answered("the return of "+m.GetName(), func() error {
		now := w.stored(m)
		now.SetOwnerReferences(kruiseOwnedBy(set))
		now.SetLabels(m.GetLabels())
		annotations := now.GetAnnotations()
		delete(annotations, kruiseOwner)
		delete(annotations, kruise.Group+"/lock")
		now.SetAnnotations(annotations)
		return w.c.Update(w.t.Context(), now, opts...)
	})
}

// phase writes that of a Sandbox's status.
func (w *kruiseWorld) phase(m *unstructured.Unstructured, phase string) {
	w.t.Helper()
	w.must(w.c.Status().Patch(w.t.Context(), w.stored(m), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"`+phase+`"}}`))))
}

// references: of a member that refers to a template its Pod is the proof.
func (w *kruiseWorld) references() {
	w.t.Helper()
	set := w.set(kruiseSpace, "referring", "template")
	fresh, stale := w.member(set, "ref-fresh"), w.member(set, "ref-stale")
	if err := w.take(fresh, "a-user", ""); err != nil {
		w.t.Errorf("a fresh member is refused: %v", err)
	}
	w.edit("SandboxTemplate", kruiseSpace, "template")
	if err := refusedForContent(w.take(stale, "a-user", "")); err != nil {
		w.t.Error(err)
	}
}

// refusedForContent is nil when a member was refused for what it is built from. Whether that
// has a name already is a matter of moments.
func refusedForContent(err error) error {
	if refused(err, "StaleRevision: ") == nil {
		return nil
	}
	return refused(err, "UnknownRevision: ")
}

// staleOnesAreRefused where somebody enforces: the namespace, or the SandboxSet.
func (w *kruiseWorld) staleOnesAreRefused() {
	w.t.Helper()
	for _, in := range []string{kruiseSpace, "audited"} {
		set := w.set(in, "edited", "")
		m := w.member(set, "stale-in-"+in)
		w.edit("SandboxSet", in, "edited")
		err := w.take(m, "a-user", "")
		if in == kruiseSpace {
			err = refusedForContent(err)
		}
		if err != nil {
			w.t.Errorf("in namespace %s: %v", in, err)
		}
	}
}

// undecided: Freshbind may not read SandboxSets for a while.
func (w *kruiseWorld) undecided(set *unstructured.Unstructured) {
	w.t.Helper()
	m := w.member(set, "undecided")
	var role rbacv1.ClusterRole
	w.must(w.c.Get(w.t.Context(), client.ObjectKey{Name: kruiseRole}, &role))
	all := slices.Clone(role.Rules)
	grant := func(rules []rbacv1.PolicyRule) {
		w.eventually("other rights", func() error {
			if err := w.c.Get(w.t.Context(), client.ObjectKey{Name: kruiseRole}, &role); err != nil {
				return err
			}
			role.Rules = rules
			return w.c.Update(w.t.Context(), &role)
		})
	}
	grant(slices.DeleteFunc(slices.Clone(all), func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, kruise.Sets.Resource) }))
	w.eventually("the right to be gone", func() error {
		err := w.c.Update(w.t.Context(), kruiseTaken(w.stored(m), "a-user", ""), client.DryRunAll)
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "could not decide") {
			return fmt.Errorf("the answer is %q, want 409 Conflict and that it could not be decided", fmt.Sprint(err))
		}
		return nil
	})
	grant(all)
	w.eventually("the member to be given", func() error { return w.take(m, "a-user", "") })
}

// orphans: the garbage collector takes the owner off members whose SandboxSet somebody
// deletes without them, and claims nothing. Nobody else may do that.
func (w *kruiseWorld) orphans(set *unstructured.Unstructured) {
	w.t.Helper()
	m := w.member(set, "orphan")
	cfg, err := w.cluster.User("system:serviceaccount:kube-system:generic-garbage-collector", "system:masters")
	w.must(err)
	collector, err := client.New(cfg, client.Options{})
	w.must(err)
	orphaned := client.RawPatch(types.MergePatchType, []byte(noOwners))
	w.eventually("somebody else to be refused", func() error {
		return refused(w.c.Patch(w.t.Context(), m.DeepCopy(), orphaned, client.DryRunAll), "ClaimGone: ")
	})
	w.eventually("the collector to take the owner off", func() error { return collector.Patch(w.t.Context(), m.DeepCopy(), orphaned) })
	if refs := w.stored(m).GetOwnerReferences(); len(refs) > 0 {
		w.t.Errorf("the member still has an owner: %v", refs)
	}
}
