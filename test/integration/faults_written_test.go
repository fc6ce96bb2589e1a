package integration

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	podIsMember   = "the member is the pod"
	ownSandbox    = "a claim's sandbox has the claim's name, so the API server refuses a second one"
	namesNoMember = "claims name no member"
)

// writtenFaults: the controllers do not see claims and sandboxes change, and what
// they would write then is written in their name.
var writtenFaults = map[string]faultCase{
	"sandbox of another claim": {
		reason:  freshness.MemberClaimed,
		reasons: map[string]freshness.Reason{barePods: freshness.PodForeign},
		prepare: func(r *row) { r.serve("first") },
		provoke: func(r *row) {
			sandbox := r.owned(r.get(upstream.SandboxClaims, "first"))[0]
			if claim := r.unseen("second"); r.w.bare {
				pod := sandbox.GetAnnotations()[builders.AnnotationPodName]
				r.isRefused(r.start(claim, r.template(r.pool.Template), pod), freshness.PodForeign)
			} else {
				r.isRefused(r.take(claim, sandbox), freshness.MemberClaimed)
			}
		},
	},
	"two claims in one write": {
		reason:     freshness.OwnerMismatch,
		impossible: map[string]string{barePods: "a bare pod is given away by its labels"},
		provoke: func(r *row) {
			claim, other, member := r.unseen("c1"), r.unseen("c2"), r.members[0]
			r.must(r.choose(claim, member.GetName()))
			plain := builders.ControllerRef(other)
			plain.Controller = nil
			r.isRefused(r.patchTo(member, func(now *object) *object {
				bound := builders.SandboxFrom(builders.Bound(now, claim, r.template(r.pool.Template)).Obj())
				return bound.Owners(plain, builders.ControllerRef(claim)).Obj()
			}), freshness.OwnerMismatch)
		},
	},
	"used sandbox put back": {
		reason:  freshness.MemberUsed,
		prepare: func(r *row) { r.serve("first") },
		provoke: (*row).putBack,
	},
	"orphaned member": {
		reason: freshness.NotAMember,
		provoke: func(r *row) {
			r.patchMember(r.members[0], noOwners)
			r.isRefused(r.take(r.unseen("c1"), r.live(r.members[0])), freshness.NotAMember)
		},
	},
	"member made by hand": {
		reason: freshness.NotAMember,
		provoke: func(r *row) {
			r.isRefused(r.take(r.unseen("c1"), r.makeByHand()), freshness.NotAMember)
		},
	},
	"member made by hand in a used pod": {
		reason:     freshness.PodForeign,
		impossible: map[string]string{barePods: podIsMember},
		prepare:    (*row).makeInUsedPod,
		provoke: func(r *row) {
			made := r.byHand
			pool := builders.ControllerRef(r.get(upstream.SandboxWarmPools, r.pool.Name))
			r.patchMember(made, string(marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []any{pool}}})))
			r.patchMember(made, forgedLabels(r.pool.Name, r.pool.Template))
			r.victims = []*object{made}
			r.isRefusedUnlessGone(r.take(r.unseen("c1"), made), made)
		},
	},
	"forged pool label": {
		reason:  freshness.PoolMismatch,
		reasons: map[string]freshness.Reason{barePods: freshness.TemplateMismatch},
		prepare: (*row).anotherPool,
		provoke: func(r *row) {
			member := r.filled(*r.other, r.other.Image)[0]
			r.patchMember(member, forgedLabels(r.pool.Name, r.pool.Template))
			claim := r.unseen("c1")
			r.isRefusedUnlessGone(r.take(claim, member), member)
			// Else it is nobody's for ever: neither pool's controller knows it.
			if !r.w.bare {
				r.must(client.IgnoreNotFound(r.patchedMember(member, forgedLabels(r.other.Name, r.other.Template))))
			}
		},
	},
	"member in a pool of another template": {
		reason: freshness.PoolMismatch,
		impossible: map[string]string{
			"v1.0.3": "claims name a pool and no template", "v0.5.6": "claims name a pool and no template",
			"v0.5.5": "claims name a pool and no template", "v0.5.3": "claims name a pool and no template", barePods: "a claim names no pool: see the forged label",
		},
		prepare: (*row).anotherPool,
		provoke: func(r *row) {
			r.must(r.Create(r.t.Context(), builders.MakeClaimV1Alpha1(r.Name, "any", r.pool.Template, "default").Obj()))
			r.claims = append(r.claims, "any")
			r.isRefused(r.take(r.get(upstream.SandboxClaims, "any"), r.filled(*r.other, r.other.Image)[0]), freshness.PoolMismatch)
		},
	},
	"claim deleted and created again": {
		reason: freshness.ClaimReplaced,
		provoke: func(r *row) {
			before := r.unseen("c1")
			r.must(r.DeleteClaims(r.t.Context(), "c1"))
			r.must(r.CreateClaims(r.t.Context(), r.pool, "c1"))
			r.refusedTransfer(before, freshness.ClaimReplaced)
		},
	},
	"claim being deleted": {
		reason:  freshness.ClaimGone,
		provoke: (*row).takeForDyingClaim,
	},
	"two warm sandboxes for a claim": {
		reason: freshness.ClaimHoldsAnother,
		// The API server itself refuses a second Sandbox of the claim's name, and
		// the Pod that was taken for it is lost (kubernetes-sigs/agent-sandbox#418).
		reasons: map[string]freshness.Reason{barePods: ""},
		prepare: func(r *row) { r.serve("c1") },
		provoke: func(r *row) {
			claim, member := r.get(upstream.SandboxClaims, "c1"), r.live(r.members[0])
			if r.w.bare {
				if err := r.take(claim, member); !apierrors.IsAlreadyExists(err) {
					r.t.Errorf("a second sandbox: %v, want that there is one already", err)
				}
				return
			}
			held := r.owned(claim)[0].GetName()
			r.isRefused(r.take(claim, member), freshness.ClaimHoldsAnother)
			r.must(r.choose(claim, held))
		},
		after: func(r *row) {
			if r.victims = r.members[:1]; r.w.bare {
				r.eventually("the lost pod deleted", func(ctx context.Context) (string, bool) { return "there", r.gone(ctx) })
			}
		},
	},
	"cold start beside a warm sandbox": {
		reason: freshness.ClaimHoldsAnother, operation: freshness.ColdStart,
		impossible: map[string]string{barePods: ownSandbox},
		prepare:    func(r *row) { r.serve("c1") },
		provoke: func(r *row) {
			claim := r.get(upstream.SandboxClaims, "c1")
			r.isRefused(r.start(claim, r.template(r.pool.Template), ""), freshness.ClaimHoldsAnother)
		},
	},
	"claim names another member": {
		reason:     freshness.ClaimNamesAnother,
		impossible: map[string]string{barePods: namesNoMember},
		provoke: func(r *row) {
			claim := r.unseen("c1")
			r.must(r.choose(claim, r.members[1].GetName()))
			r.isRefused(r.transfer(claim, r.live(r.members[0])), freshness.ClaimNamesAnother)
		},
	},
	"blueprint changed by the bind": {
		reason: freshness.BlueprintChanged,
		provoke: func(r *row) {
			claim, member := r.unseen("c1"), r.live(r.members[0])
			if r.w.bare {
				evil := func(taken *object) { setImage(taken, "evil:v1") }
				r.isRefused(r.releasePod(claim, member, evil), freshness.BlueprintChanged)
				return
			}
			r.must(r.choose(claim, member.GetName()))
			r.isRefused(r.patchTo(member, func(now *object) *object {
				return builders.Bound(now, claim, r.template(r.pool.Template)).Image("evil:v1").Obj()
			}), freshness.BlueprintChanged)
		},
	},
	"pod not there yet": {
		reason:     freshness.PodNotYet,
		impossible: map[string]string{barePods: podIsMember},
		provoke: func(r *row) {
			born := builders.MakeMember(r.get(upstream.SandboxWarmPools, r.pool.Name), r.template(r.pool.Template)).UID("").Obj()
			member, err := r.as(upstream.Sandboxes).Create(r.t.Context(), born, createOptions)
			r.must(err)
			r.isRefused(r.take(r.unseen("c1"), member), freshness.PodNotYet)
		},
	},
}

func (r *row) patchMember(member *object, patch string) {
	r.t.Helper()
	r.must(r.patchedMember(member, patch))
}

func (r *row) patchedMember(member *object, patch string) error {
	_, err := r.memberClient().Patch(r.t.Context(), member.GetName(), mergePatch, []byte(patch), patchOptions)
	return err
}

// forgedLabels are those by which a claim finds a pool's members.
func forgedLabels(pool, template string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{%q:%q,%q:%q}}}`, builders.LabelPool, builders.NameHash(pool),
		builders.LabelTemplateRef, builders.NameHash(template))
}

func (r *row) anotherPool() {
	r.other = &scenario.Pool{Name: r.otherName(), Template: r.otherName(), Image: "other:v1", Replicas: 1}
	r.create(*r.other, nil)
	r.filled(*r.other, r.other.Image)
}

// makeByHand stores what looks like a member and is nobody's.
func (r *row) makeByHand() *object {
	r.t.Helper()
	made := builders.SandboxFrom(r.live(r.members[0])).Name(r.pool.Name + "-hand").Unset("status").Obj()
	made.SetUID("")
	made.SetResourceVersion("")
	made.SetGenerateName("")
	made.SetOwnerReferences(nil)
	stored, err := r.memberClient().Create(r.t.Context(), made, createOptions)
	r.must(err)
	if r.w.bare {
		// What is written to a Pod that starts would make the claim a conflict.
		r.eventually("pod made by hand runs", func(context.Context) (string, bool) {
			stored = r.live(stored)
			phase, _, _ := unstructured.NestedString(stored.Object, "status", "phase")
			return phase, phase == "Running"
		})
	}
	return stored
}

// refusedTransfer writes what follows once a claim has been given a member, as a
// controller does that knows the claim as it was.
func (r *row) refusedTransfer(claim *object, reason freshness.Reason) {
	r.t.Helper()
	member := r.live(r.members[0])
	if !r.w.bare {
		r.isRefused(r.transfer(claim, member), reason)
		return
	}
	r.must(r.releasePod(claim, member))
	r.isRefused(r.start(claim, r.template(r.pool.Template), member.GetName()), reason)
}

func (r *row) takeForDyingClaim() {
	r.t.Helper()
	claim := r.unseen("dying")
	r.claims = nil
	hold := func(finalizers string) {
		r.patch(upstream.SandboxClaims, "dying", `{"metadata":{"finalizers":`+finalizers+`}}`)
	}
	hold(`["test.freshbind.dev/hold"]`)
	if !r.w.bare {
		r.must(r.choose(claim, r.members[0].GetName()))
	}
	r.must(r.DeleteClaims(r.t.Context(), "dying"))
	r.refusedTransfer(claim, freshness.ClaimGone)
	hold("null")
	r.unseen("c1")
}

// putBack makes a member of what the first claim, which is deleted, had: what a
// policy refuses, and what somebody did before anything was enforced.
func (r *row) putBack() {
	r.t.Helper()
	claim := r.get(upstream.SandboxClaims, "first")
	used := r.owned(claim)[0]
	r.must(r.DeleteClaims(r.t.Context(), "first"))
	r.claims = nil
	pool := r.get(upstream.SandboxWarmPools, r.pool.Name)
	if r.w.bare {
		pod := used.GetAnnotations()[builders.AnnotationPodName]
		r.must(r.Resource(upstream.Sandboxes).Delete(r.t.Context(), used.GetName(), metav1.DeleteOptions{}))
		used = r.pod(pod)
	}
	back := string(marshal(map[string]any{"metadata": map[string]any{
		"ownerReferences": []any{builders.ControllerRef(pool)},
		"labels": map[string]any{
			builders.LabelPool: builders.NameHash(pool.GetName()), barePoolLabel: builders.NameHash(pool.GetName()),
			builders.LabelTemplateRef: builders.NameHash(r.pool.Template),
		},
	}}))
	if r.w.bare {
		r.patchMember(used, back)
	} else {
		r.putBackUnenforced(used.GetName(), back)
	}
	r.victims = []*object{used}
	claim = r.unseen("c1")
	if now := r.asMember(used); now != nil {
		if err := r.take(claim, now); !r.gone(r.t.Context()) {
			r.isRefused(err, freshness.MemberUsed)
		}
	}
}

// asMember reads a member that Freshbind may have deleted already; nil then.
func (r *row) asMember(member *object) *object {
	now, err := r.memberClient().Get(r.t.Context(), member.GetName(), getOptions)
	if isNotFound(err) || err == nil && (now.GetUID() != member.GetUID() || now.GetDeletionTimestamp() != nil) {
		return nil
	}
	r.must(err)
	return now
}

func (r *row) putBackUnenforced(name, back string) {
	r.t.Helper()
	patch := func(ctx context.Context) error {
		_, err := r.Resource(upstream.Sandboxes).Patch(ctx, name, mergePatch, []byte(back), patchOptions)
		return err
	}
	if err := patch(r.t.Context()); !unguarded && !apierrors.IsInvalid(err) {
		r.t.Errorf("putting a used sandbox back: %v, want it refused", err)
	}
	r.enforce("audit")
	r.eventually("used sandbox put back", func(ctx context.Context) (string, bool) {
		err := patch(ctx)
		return fmt.Sprint(err), err == nil
	})
	if unguarded {
		return
	}
	r.enforce("enforce")
	// Freshbind may have deleted what was put back, and its pool what is too many.
	r.eventually("policy in force again", func(ctx context.Context) (string, bool) {
		list, err := r.Resource(upstream.Sandboxes).List(ctx, metav1.ListOptions{})
		r.must(err)
		for i := range list.Items {
			_, err = r.Resource(upstream.Sandboxes).Patch(ctx, list.Items[i].GetName(), mergePatch,
				stampPatch("v1-forged"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			if apierrors.IsInvalid(err) {
				return "", true
			}
		}
		return fmt.Sprintf("%d sandboxes; the last: %v", len(list.Items), err), false
	})
	r.must(r.WaitGuarded(r.t.Context(), within))
}

func (r *row) enforce(mode string) {
	r.t.Helper()
	_, err := r.w.core.Resource(podResource.GroupVersion().WithResource("namespaces")).Patch(r.t.Context(), r.Name, mergePatch,
		[]byte(`{"metadata":{"labels":{"`+settings.EnforcementKey+`":"`+mode+`"}}}`), patchOptions)
	r.must(err)
}
