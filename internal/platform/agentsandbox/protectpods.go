package agentsandbox

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
)

// PodDeletions reads what the verdict depends on when the pool's controller
// deletes a bare Pod that has left the pool. Platform and API have to be set.
type PodDeletions struct {
	Platform *Platform
	// API reads from the API server, not from a cache. It lists: before a Sandbox
	// owns the Pod nothing on it names that, and such deletes are rare.
	API client.Reader
}

// Deletion reads, of the Sandbox that a Pod belongs to, what Platform.Deletion
// does. A delete that the Sandbox itself may have called for has no owner. An
// error means that something could not be read.
func (p *PodDeletions) Deletion(ctx context.Context, pod *unstructured.Unstructured, now time.Time) (freshness.Deletion, error) {
	nobodys := freshness.Deletion{Sandbox: pod.GetName()}
	if pod.GetDeletionTimestamp() != nil {
		return nobodys, nil
	}
	var sandbox *unstructured.Unstructured
	var err error
	if owner := metav1.GetControllerOfNoCopy(pod); owner == nil {
		var others []*unstructured.Unstructured
		if sandbox, others, err = p.taker(ctx, pod); err == nil && sandbox == nil {
			return p.promised(ctx, pod, others, now)
		}
	} else if IsSandbox(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()) {
		sandbox, err = p.Platform.Get(ctx, Sandboxes, pod.GetNamespace(), owner.Name)
		if sandbox != nil && sandbox.GetUID() != owner.UID {
			sandbox = nil
		}
	}
	switch {
	case err != nil:
		return freshness.Deletion{}, fmt.Errorf("judging the delete of pod %s: %w", pod.GetName(), err)
	case sandbox == nil, sandbox.GetDeletionTimestamp() != nil, wantsNoPod(sandbox):
		return nobodys, nil
	}
	return p.Platform.Deletion(ctx, sandbox, now)
}

// AnswerDelete is that of Platform.
func (p *PodDeletions) AnswerDelete() (code int32, reason metav1.StatusReason) {
	return p.Platform.AnswerDelete()
}

// taker returns the Sandbox that is to run in a Pod without an owner, else nil and all
// others of the namespace.
func (p *PodDeletions) taker(ctx context.Context, pod *unstructured.Unstructured) (taker *unstructured.Unstructured, others []*unstructured.Unstructured, err error) {
	sandboxes, err := p.lister().list(ctx, Sandboxes, kindSandbox, pod.GetNamespace(), labels.Everything())
	if err != nil {
		return nil, nil, err
	}
	for _, s := range sandboxes {
		if PodNameOf(s) == pod.GetName() {
			return s, nil, nil
		}
	}
	return nil, sandboxes, nil
}

// promised is about a Pod that no Sandbox has yet: its claim creates one next. v0.2.1
// writes that claim onto the Pod. v0.1.0 does not, so that any claim without a Sandbox
// may be the one.
func (p *PodDeletions) promised(ctx context.Context, pod *unstructured.Unstructured, sandboxes []*unstructured.Unstructured, now time.Time) (freshness.Deletion, error) {
	nobodys := freshness.Deletion{Sandbox: pod.GetName()}
	claims, err := p.lister().list(ctx, Claims, kindClaim, pod.GetNamespace(), labels.Everything())
	if err != nil {
		return freshness.Deletion{}, fmt.Errorf("judging the delete of pod %s: %w", pod.GetName(), err)
	}
	served := map[string]bool{}
	for _, s := range sandboxes {
		for _, c := range ClaimsOf(s) {
			served[c.UID] = true
		}
	}
	promisedTo := pod.GetLabels()[PodClaimLabel]
	for _, c := range claims {
		uid := string(c.GetUID())
		if served[uid] || promisedTo != "" && promisedTo != uid {
			continue
		}
		d := freshness.Deletion{
			Sandbox: pod.GetName(), Owner: freshness.Owner{Kind: freshness.OwnedByClaim, Name: c.GetName(), UID: uid},
			Claim: claimOf(c), ClaimExpired: claimExpired(c, now),
		}
		if !freshness.JudgeDelete(d).Allowed {
			return d, nil
		}
	}
	return nobodys, nil
}

// lister has no cache, and so reads what is stored now.
func (p *PodDeletions) lister() *Lister { return &Lister{API: p.API, Resolver: p.Platform.Resolver} }

// wantsNoPod reports whether a Sandbox is scaled to zero, so that its own
// controller deletes the Pod: spec.replicas in v1alpha1, spec.operatingMode in
// v1beta1.
func wantsNoPod(sandbox *unstructured.Unstructured) bool {
	replicas, found, _ := unstructured.NestedInt64(sandbox.Object, "spec", "replicas")
	return found && replicas == 0 || str(sandbox.Object, "spec", "operatingMode") == "Suspended"
}
