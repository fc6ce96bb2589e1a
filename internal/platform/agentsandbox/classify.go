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
// among the owners that was not there before, whoever owned it until then.
func (*Platform) Classify(op admissionv1.Operation, old, obj *unstructured.Unstructured) (w platform.Write, ok bool) {
	if obj != nil && IsPod(obj) {
		return classifyPod(op, old, obj)
	}
	w = platform.Write{Old: old, New: obj}
	switch op {
	case admissionv1.Create:
		if claim := newClaim(nil, obj); claim.UID != "" {
			w.Operation, w.Claim = freshness.ColdStart, claim
			if namesBarePod(obj) {
				w.Operation = freshness.WarmStart
			}
			return w, true
		}
		if controllerOf(obj).Kind == freshness.OwnedByPool {
			w.Operation = freshness.Birth
			return w, true
		}
	case admissionv1.Update:
		if claim := newClaim(old, obj); claim.UID != "" {
			w.Operation, w.Claim = freshness.Bind, claim
			return w, true
		}
	}
	return platform.Write{}, false
}

// newClaim returns the claim among obj's owners that is not among old's.
func newClaim(old, obj *unstructured.Unstructured) freshness.Owner {
	before := map[string]bool{}
	if old != nil {
		for _, o := range owners(old) {
			before[o.UID] = true
		}
	}
	for _, o := range ClaimsOf(obj) {
		if !before[o.UID] {
			return o
		}
	}
	return freshness.Owner{}
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
// version of their writer (kubernetes-sigs/agent-sandbox#1190).
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
	group, _, _ := strings.Cut(apiVersion, "/")
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
