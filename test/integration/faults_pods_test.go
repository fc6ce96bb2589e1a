package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// podFaults: the controllers do not see what becomes of Pods.
var podFaults = map[string]faultCase{
	"pod terminating": {
		reason:  freshness.PodTerminating,
		reasons: map[string]freshness.Reason{barePods: freshness.MemberTerminating},
		provoke: func(r *row) {
			for _, m := range r.members {
				r.patchPod(m, `{"metadata":{"finalizers":["test.freshbind.dev/hold"]}}`)
				r.deletePod(m)
			}
			r.attempt()
		},
		after: func(r *row) {
			for _, m := range r.members {
				r.patchPod(m, `{"metadata":{"finalizers":null}}`)
			}
		},
	},
	"pod succeeded": {reason: freshness.PodFinished, provoke: func(r *row) { r.end("Succeeded"); r.attempt() }},
	"pod failed":    {reason: freshness.PodFinished, provoke: func(r *row) { r.end("Failed"); r.attempt() }},
	"pod debugged": {
		reason: freshness.PodModified,
		provoke: func(r *row) {
			for _, m := range r.members {
				r.debug(m)
			}
			r.attempt()
		},
	},
	"pod gone": {
		reason:     freshness.PodFinished,
		impossible: map[string]string{barePods: podIsMember},
		provoke:    func(r *row) { r.removePods(); r.attempt() },
	},
	"pod replaced by a foreign one": {
		reason:     freshness.PodForeign,
		impossible: map[string]string{barePods: podIsMember},
		provoke: func(r *row) {
			r.removePods()
			for _, m := range r.members {
				r.must(r.foreignPod(m))
			}
			r.attempt()
		},
		after: func(r *row) {
			for _, m := range r.members {
				r.deletePod(m)
			}
		},
	},
}

// attempt has claims want the members. A bare Pod whose change the controllers
// do not see they write with its old resourceVersion, in vain; so what they
// write once they have seen it is written for them.
func (r *row) attempt() {
	r.t.Helper()
	r.claim()
	if r.w.bare {
		claim := r.get(upstream.SandboxClaims, r.claims[0])
		for _, m := range r.members {
			now, err := r.memberClient().Get(r.t.Context(), m.GetName(), getOptions)
			if err == nil {
				err = r.take(claim, now)
			}
			r.isRefusedUnlessGone(err, m)
		}
	}
}

func (r *row) patchPod(member *object, patch string) {
	r.t.Helper()
	_, err := r.coreClient("pods").Patch(r.t.Context(), member.GetName(), mergePatch, []byte(patch), patchOptions)
	if err != nil && !isNotFound(err) {
		r.t.Error(err)
	}
}

// debug does what kubectl debug does.
func (r *row) debug(member *object) {
	r.t.Helper()
	const patch = `{"spec":{"ephemeralContainers":[{"name":"debugger","image":"busybox"}]}}`
	_, err := r.coreClient("pods").Patch(r.t.Context(), podNameOf(member), mergePatch, []byte(patch), patchOptions, "ephemeralcontainers")
	r.must(err)
}

func (r *row) deletePod(member *object) {
	r.t.Helper()
	now := int64(0)
	err := r.coreClient("pods").Delete(r.t.Context(), member.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !isNotFound(err) {
		r.t.Error(err)
	}
}

func (r *row) removePods() {
	r.t.Helper()
	for _, m := range r.members {
		r.deletePod(m)
		r.eventually("pod "+m.GetName()+" gone", func(ctx context.Context) (string, bool) {
			_, err := r.coreClient("pods").Get(ctx, m.GetName(), metav1.GetOptions{})
			return fmt.Sprint(err), isNotFound(err)
		})
	}
}

func (r *row) end(phase string) {
	r.t.Helper()
	for _, m := range r.members {
		_, err := r.coreClient("pods").Patch(r.t.Context(), m.GetName(), mergePatch, []byte(`{"status":{"phase":"`+phase+`"}}`), patchOptions, "status")
		r.must(err)
	}
}

// foreignPod creates a Pod of the member's name that is another controller's:
// one that is nobody's the Sandbox controller makes its own.
func (r *row) foreignPod(member *object) error {
	controls := true
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "another", UID: "another", Controller: &controls}
	pod := builders.MakePod(member).Owners(owner).UID("").Obj()
	pod.SetLabels(nil)
	_, err := r.coreClient("pods").Create(r.t.Context(), pod, createOptions)
	return err
}

const noOwners = `{"metadata":{"ownerReferences":null}}`

// makeInUsedPod makes what looks like a member, in the name of the sandbox that the first
// claim had. Its Pod outlives that, and is taken over.
func (r *row) makeInUsedPod() {
	r.t.Helper()
	_, used := r.serve("first")
	r.must(r.DeleteClaims(r.t.Context(), "first"))
	r.claims = nil
	r.orphanPod(used)
	pod := r.pod(used.GetName())
	copied := builders.SandboxFrom(r.live(r.members[0])).Name(used.GetName()).UID("").Owners().NoLabel(builders.LabelPool).NoLabel(settings.StampKey).
		Unset("status").Unset("metadata", "resourceVersion").Unset("metadata", "generateName").Unset("metadata", "annotations", settings.CreatedByKey).
		PodName(used.GetName()).Obj()
	create := func(ctx context.Context, dryRun ...string) (made *object, err error) {
		return r.memberClient().Create(ctx, copied, metav1.CreateOptions{DryRun: dryRun})
	}
	// Creation times are whole seconds.
	r.eventually("the second after the pod was created", func(ctx context.Context) (string, bool) {
		made, err := create(ctx, metav1.DryRunAll)
		return fmt.Sprint(err), err == nil && made.GetCreationTimestamp().After(pod.GetCreationTimestamp().Time)
	})
	made, err := create(r.t.Context())
	r.must(err)
	r.eventually("the pod taken over", func(context.Context) (string, bool) {
		r.byHand = r.live(made)
		owned := r.pod(used.GetName())
		// Where it sees Sandboxes late, agent-sandbox made the deleted one the owner once more.
		if metav1.IsControlledBy(owned, used) {
			r.patchPod(used, noOwners)
		}
		addresses, _, _ := unstructured.NestedStringSlice(r.byHand.Object, "status", "podIPs")
		return fmt.Sprint(addresses), metav1.IsControlledBy(owned, made) && len(addresses) > 0
	})
}

// orphanPod deletes a Sandbox and leaves its Pod: the garbage collector, which takes the
// owner off the Pod and then lets the Sandbox go, does not run here.
func (r *row) orphanPod(sandbox *object) {
	r.t.Helper()
	orphan := metav1.DeletePropagationOrphan
	r.must(r.memberClient().Delete(r.t.Context(), sandbox.GetName(), metav1.DeleteOptions{PropagationPolicy: &orphan}))
	r.patchPod(sandbox, noOwners)
	r.patchMember(sandbox, `{"metadata":{"finalizers":null}}`)
}

func setImage(pod *object, image string) {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	if first, ok := containers[0].(map[string]any); ok {
		first["image"] = image
	}
	_ = unstructured.SetNestedSlice(pod.Object, containers, "spec", "containers")
}

// deleteFaults: the pool's controller does not see that its members are taken.
var deleteFaults = map[string]faultCase{
	"pool deletes what was just claimed": {
		reason: freshness.MemberClaimed, operation: deletion,
		provoke: func(r *row) {
			r.unprotected = r.w.unprotected(r.t)
			names := scenario.Names("c", replicas)
			if r.w.bare {
				// A second claim would try the first one's again and again.
				names = names[:1]
			}
			r.must(r.CreateClaims(r.t.Context(), r.pool, names...))
			r.claims = names
			r.eventually("members taken", func(context.Context) (string, bool) {
				r.victims = r.taken()
				// v0.1.0 says only by its Sandbox who has taken a Pod.
				served := len(r.list(upstream.Sandboxes)) > 0
				return fmt.Sprint(len(r.victims)), served && len(r.victims) == len(names)
			})
			r.patch(upstream.SandboxWarmPools, r.pool.Name, `{"spec":{"replicas":0}}`)
			r.refused(freshness.MemberClaimed)
			r.patch(upstream.SandboxWarmPools, r.pool.Name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		},
		after: func(r *row) {
			// The hooks fail open.
			most := r.w.unprotected(r.t) - r.unprotected
			for _, v := range r.victims {
				now, err := r.memberClient().Get(r.t.Context(), v.GetName(), getOptions)
				if err == nil && now.GetUID() == v.GetUID() && now.GetDeletionTimestamp() == nil {
					continue
				}
				if most--; most < 0 {
					r.t.Errorf("%s, which a claim had, was deleted: %v", v.GetName(), err)
				}
			}
		},
	},
}

// taken are those of the members that are there and belong to no pool.
func (r *row) taken() []*object {
	r.t.Helper()
	list, err := r.memberClient().List(r.t.Context(), metav1.ListOptions{})
	r.must(err)
	var out []*object
	for i := range list.Items {
		owner := metav1.GetControllerOf(&list.Items[i])
		if owner != nil && owner.Kind == "SandboxWarmPool" {
			continue
		}
		for _, m := range r.members {
			if m.GetUID() == list.Items[i].GetUID() {
				out = append(out, m)
			}
		}
	}
	return out
}

// noneTaken checks that nobody was given one of the members.
func (r *row) noneTaken() {
	r.t.Helper()
	for _, m := range r.taken() {
		r.t.Errorf("%s was given to a claim", m.GetName())
	}
}

// outageFaults are played alone: they concern the whole world.
var outageFaults = map[string]faultCase{
	"webhook stopped and started": {
		reason: freshness.StaleRevision,
		provoke: func(r *row) {
			r.must(r.w.Guard.Stop())
			r.image(r.pool, "sandbox:v2")
			r.claim()
			claim := r.get(upstream.SandboxClaims, r.claims[0])
			err := r.start(claim, r.template(r.pool.Template), "")
			if !unguarded && !isUnanswered(err) {
				r.t.Errorf("a cold start while the webhook is stopped: %v, want no answer", err)
			}
			r.must(errors.Join(r.w.Guard.Start(r.t.Context()), r.guarded()))
		},
	},
}

func (r *row) guarded() error {
	if unguarded {
		return nil
	}
	return r.WaitGuarded(r.t.Context(), within)
}

// isUnanswered: the API server refused because no webhook answered it.
func isUnanswered(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}
