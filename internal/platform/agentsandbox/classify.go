package agentsandbox

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

// Classify says what a write of a Sandbox or Pod is; ok is false when it is none
// of ours. old is nil for a CREATE. A bind is any UPDATE after which a claim is
// among the owners that was not there before as a claim, whoever owned it until
// then.
func (*Platform) Classify(op admissionv1.Operation, old, obj *unstructured.Unstructured) (w platform.Write, ok bool) {
	if obj != nil && IsPod(obj) {
		return classifyPod(op, old, obj)
	}
	if op != admissionv1.Create && op != admissionv1.Update {
		return platform.Write{}, false
	}
	w = platform.Write{Old: old, New: obj}
	claim, stranger := gained(old, obj, freshness.OwnedByClaim), gained(old, obj, freshness.OwnedByAnother)
	switch {
	case claim.UID != "" && op == admissionv1.Update:
		w.Operation, w.Claim = freshness.Bind, claim
	case claim.UID != "" && namesBarePod(obj):
		w.Operation, w.Claim = freshness.WarmStart, claim
	case claim.UID != "":
		w.Operation, w.Claim = freshness.ColdStart, claim
	case stranger.UID != "":
		// Its name is whatever the writer chose.
		w.Operation, w.Claim = freshness.ForeignController, freshness.Owner{Kind: stranger.Kind, UID: stranger.UID}
	case op == admissionv1.Create && controllerOf(obj).Kind == freshness.OwnedByPool:
		w.Operation = freshness.Birth
	default:
		return platform.Write{}, false
	}
	return w, true
}

// gained returns the owner of this kind that obj has and old had not as one of
// this kind. The same UID under another kind is no reason to think that it was
// there: nobody has judged that.
func gained(old, obj *unstructured.Unstructured, kind freshness.OwnerKind) freshness.Owner {
	before := map[string]bool{}
	if old != nil {
		for _, o := range holders(old) {
			before[o.UID] = before[o.UID] || o.Kind == kind
		}
	}
	for _, o := range holders(obj) {
		if o.Kind == kind && !before[o.UID] {
			return o
		}
	}
	return freshness.Owner{}
}

// holders are the owners that have a Sandbox: every claim and pool, and whatever
// else is marked as its controller. Upstream asks for no more than the
// controller's UID (metav1.IsControlledBy).
func holders(obj metav1.Object) []freshness.Owner {
	var out []freshness.Owner
	for _, ref := range obj.GetOwnerReferences() {
		kind := ownerKind(ref.APIVersion, ref.Kind)
		if kind != freshness.OwnedByAnother || ref.Controller != nil && *ref.Controller {
			out = append(out, freshness.Owner{Kind: kind, Name: ref.Name, UID: string(ref.UID)})
		}
	}
	return out
}

// besides are those that would have the Sandbox together with the write's claim.
func besides(w platform.Write) []freshness.Owner {
	if w.Claim.UID == "" {
		return nil
	}
	return slices.DeleteFunc(holders(w.New), func(o freshness.Owner) bool { return o.Kind == w.Claim.Kind && o.UID == w.Claim.UID })
}

// ClaimsOf returns the claims among an object's owners.
func ClaimsOf(obj metav1.Object) []freshness.Owner {
	return slices.DeleteFunc(owners(obj), func(o freshness.Owner) bool { return o.Kind != freshness.OwnedByClaim })
}

func owners(obj metav1.Object) []freshness.Owner {
	var out []freshness.Owner
	for _, ref := range obj.GetOwnerReferences() {
		out = append(out, freshness.Owner{
			Kind: ownerKind(ref.APIVersion, ref.Kind), Name: ref.Name, UID: string(ref.UID),
		})
	}
	return out
}

// ownerKind matches group and kind, never the version: references keep the
// version of their writer (kubernetes-sigs/agent-sandbox#1190). The webhooks'
// conditions say the same in CEL.
func ownerKind(apiVersion, kind string) freshness.OwnerKind {
	if gk := groupKind(apiVersion, kind); gk.Group == ExtensionsGroup {
		switch gk.Kind {
		case kindPool:
			return freshness.OwnedByPool
		case kindClaim:
			return freshness.OwnedByClaim
		}
	}
	return freshness.OwnedByAnother
}

func groupKind(apiVersion, kind string) schema.GroupKind {
	// Without a slash it is a version of the core group.
	group, _, named := strings.Cut(apiVersion, "/")
	if !named {
		group = ""
	}
	return schema.GroupKind{Group: group, Kind: kind}
}

// controllerOf returns the owner that is marked as controller; a claim counts
// even unmarked, because whoever owns a sandbox for a claim has it.
func controllerOf(obj *unstructured.Unstructured) freshness.Owner {
	var out freshness.Owner
	for _, ref := range obj.GetOwnerReferences() {
		o := freshness.Owner{Kind: ownerKind(ref.APIVersion, ref.Kind), Name: ref.Name, UID: string(ref.UID)}
		if o.Kind == freshness.OwnedByClaim {
			return o
		}
		if ref.Controller != nil && *ref.Controller {
			out = o
		}
	}
	return out
}
