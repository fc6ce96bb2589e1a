package integration

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

type object = unstructured.Unstructured

// as is a client for agent-sandbox's resources with upstream's identity.
func (r *row) as(resource schema.GroupResource) dynamic.ResourceInterface {
	return r.w.upstream.Resource(resource.WithVersion(r.Version)).Namespace(r.Name)
}

// coreClient is for what is not agent-sandbox's.
func (r *row) coreClient(resource string) dynamic.ResourceInterface {
	return r.w.core.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(r.Name)
}

// memberClient is for members: Sandboxes, or bare Pods.
func (r *row) memberClient() dynamic.ResourceInterface {
	if r.w.bare {
		return r.coreClient("pods")
	}
	return r.Resource(upstream.Sandboxes)
}

// unseen creates a claim that the controllers do not see yet.
func (r *row) unseen(name string) *object {
	r.t.Helper()
	r.must(r.CreateClaims(r.t.Context(), r.pool, name))
	r.claims = append(r.claims, name)
	return r.get(upstream.SandboxClaims, name)
}

// live reads a member, a Sandbox or a bare Pod, as it is now.
func (r *row) live(member *object) *object {
	r.t.Helper()
	now, err := r.memberClient().Get(r.t.Context(), member.GetName(), metav1.GetOptions{})
	r.must(err)
	return now
}

func (r *row) pod(name string) *object {
	r.t.Helper()
	pod, err := r.coreClient("pods").Get(r.t.Context(), name, metav1.GetOptions{})
	r.must(err)
	return pod
}

// take writes what the claim controller of the release writes to give a claim a
// member, up to the first write that is refused.
func (r *row) take(claim, member *object) error {
	r.t.Helper()
	if r.w.bare {
		if err := r.releasePod(claim, member); err != nil {
			return err
		}
		return r.start(claim, r.template(r.pool.Template), member.GetName())
	}
	r.must(r.choose(claim, member.GetName()))
	return r.transfer(claim, member)
}

// judged is answered, under the name that rows know it by.
func (r *row) judged(write func() error) error {
	r.t.Helper()
	return r.answered(write)
}

// answered makes a write until it is judged, as every writer does: again onto what is
// stored now when somebody else was faster, and again when nobody could decide in time.
func (s *stage) answered(write func() error) error {
	s.t.Helper()
	var answer error
	err := scenario.Poll(s.t.Context(), within, func(context.Context) (bool, error) {
		answer = write()
		return !saysNothing(answer), nil
	})
	if err != nil {
		s.t.Fatalf("a write is not judged: %v; the last answer: %v", err, answer)
	}
	return answer
}

// otherVersion is how the API server refuses an update onto an older version
// (k8s.io/apiserver, pkg/registry/generic/registry); a verdict can be a Conflict, too.
const otherVersion = "the object has been modified"

// saysNothing: an answer that is about the moment, and not about what was written.
func saysNothing(answer error) bool {
	return answer != nil && (strings.Contains(answer.Error(), otherVersion) || tooLate(answer))
}

// tooLate: nobody could decide in time.
func tooLate(answer error) bool {
	return answer != nil && (strings.Contains(answer.Error(), "could not decide") || strings.Contains(answer.Error(), "deadline exceeded"))
}

// choose writes the chosen member into the claim: by label in v0.4.6, by
// annotation later.
func (r *row) choose(claim *object, member string) error {
	r.t.Helper()
	return r.judged(func() error {
		chosen := builders.ClaimFrom(r.get(upstream.SandboxClaims, claim.GetName())).Names(member).Obj()
		_, err := r.as(upstream.SandboxClaims).Update(r.t.Context(), chosen, updateOptions)
		return err
	})
}

// transfer is the merge patch that hands the member over.
func (r *row) transfer(claim, member *object) error {
	r.t.Helper()
	return r.patchTo(member, func(now *object) *object { return builders.Bound(now, claim, r.template(r.pool.Template)).Obj() })
}

// patchTo patches a Sandbox, until v0.5.3 onto whatever version is stored.
func (r *row) patchTo(member *object, bind func(now *object) *object) error {
	r.t.Helper()
	return r.judged(func() error {
		now, err := r.memberClient().Get(r.t.Context(), member.GetName(), getOptions)
		if err != nil {
			return err
		}
		bound := bind(now)
		bound.SetGeneration(now.GetGeneration())
		from := client.MergeFrom(now)
		if !slices.Contains([]string{"v0.4.6", "v0.5.3"}, r.w.release) {
			from = client.MergeFromWithOptions(now, client.MergeFromWithOptimisticLock{})
		}
		patch, err := from.Data(bound)
		r.must(err)
		_, err = r.as(upstream.Sandboxes).Patch(r.t.Context(), member.GetName(), from.Type(), patch, patchOptions)
		return err
	})
}

// releasePod is the PUT by which a bare Pod leaves its pool: v0.1.0 takes both
// labels off, v0.2.1 says whose it is. Whatever else the write changes comes on top.
func (r *row) releasePod(claim, pod *object, more ...func(taken *object)) error {
	r.t.Helper()
	return r.judged(func() error {
		taken, err := r.memberClient().Get(r.t.Context(), pod.GetName(), getOptions)
		if err != nil {
			return err
		}
		taken.SetOwnerReferences(nil)
		labels := taken.GetLabels()
		delete(labels, barePoolLabel)
		if r.w.release == "v0.1.0" {
			delete(labels, builders.LabelTemplateRef)
		} else {
			labels[builders.LabelNameHash] = builders.NameHash(claim.GetName())
			labels[builders.LabelClaimUID] = string(claim.GetUID())
		}
		taken.SetLabels(labels)
		for _, change := range more {
			change(taken)
		}
		_, err = r.w.upstream.Resource(podResource).Namespace(r.Name).Update(r.t.Context(), taken, updateOptions)
		return err
	})
}

func (r *row) template(name string) *object {
	r.t.Helper()
	return r.get(upstream.SandboxTemplates, name)
}

// start is the CREATE of a claim's Sandbox: cold, or in a bare Pod. v0.1.0 adds
// neither labels nor secure defaults.
func (r *row) start(claim, template *object, pod string) error {
	r.t.Helper()
	made := builders.MakeColdStart(claim, template)
	if pod != "" {
		made.PodName(pod)
	}
	if r.w.release == "v0.1.0" {
		spec, _, _ := unstructured.NestedMap(template.Object, "spec", "podTemplate")
		made.Set(spec, "spec", "podTemplate")
	}
	sandbox := made.UID("").Obj()
	if r.w.release == "v0.1.0" {
		sandbox.SetLabels(nil)
	}
	return r.judged(func() error {
		_, err := r.as(upstream.Sandboxes).Create(r.t.Context(), sandbox, createOptions)
		return err
	})
}

// isRefused checks that a write in the controllers' name was refused.
func (r *row) isRefused(err error, reason freshness.Reason) {
	r.t.Helper()
	if err == nil || !strings.Contains(err.Error(), string(reason)) {
		r.t.Errorf("the write was answered: %v; want a refusal for %s", err, reason)
	}
}

// isRefusedUnlessGone is for members that the claim controller may have tried
// before: Freshbind deletes those that were refused for their own fault.
func (r *row) isRefusedUnlessGone(err error, member *object) {
	r.t.Helper()
	now, gone := r.memberClient().Get(r.t.Context(), member.GetName(), getOptions)
	if isNotFound(gone) || gone == nil && now.GetDeletionTimestamp() != nil {
		// Nobody can be refused it for anything else any more: of all members it is the
		// one that had to go.
		r.victims = []*object{member}
		return
	}
	r.isRefused(err, r.want())
}
