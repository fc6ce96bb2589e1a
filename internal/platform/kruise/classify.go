package kruise

import (
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fields"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

// Classify says what a write of a Sandbox is. A bind is the update after which the
// SandboxSet that controlled it does so no more, or one that gives it from one claim to
// another, and a return the one that brings a used one back. What pauses, resumes,
// upgrades or locks one keeps its owner, and is none of ours. So are clones, whose
// content is meant to be old, and Sandboxes that somebody makes by hand.
func (*Platform) Classify(op admissionv1.Operation, old, obj *unstructured.Unstructured) (platform.Write, bool) {
	w := platform.Write{Old: old, New: obj}
	switch {
	case op == admissionv1.Update && (isTaken(old, obj) || isOvertaken(old, obj)):
		w.Operation, w.Claim = freshness.Bind, claimOf(obj)
	case op == admissionv1.Update && isReturned(old, obj):
		w.Operation = freshness.Return
	case op == admissionv1.Create && poolOf(obj).UID != "":
		w.Operation = freshness.Birth
	case op == admissionv1.Create && isColdStart(obj):
		w.Operation, w.Claim = freshness.ColdStart, claimOf(obj)
	default:
		return platform.Write{}, false
	}
	return w, true
}

func isTaken(old, obj metav1.Object) bool {
	pool := poolOf(old)
	return pool.UID != "" && poolOf(obj).UID != pool.UID
}

// isOvertaken: one claim takes from another what no pool has.
func isOvertaken(old, obj metav1.Object) bool {
	had, has := claimOf(old).UID, claimOf(obj).UID
	return poolOf(old).UID == "" && poolOf(obj).UID == "" && isClaimed(old) && isClaimed(obj) && had != "" && has != "" && had != has
}

// isReturned: a SandboxSet has what somebody had.
func isReturned(old, obj *unstructured.Unstructured) bool {
	return poolOf(old).UID == "" && poolOf(obj).UID != "" && (isClaimed(old) || old.GetAnnotations()[ownerAnnotation] != "" ||
		fields.String(old.Object, "spec", "template", "metadata", "labels", ownerLabel) != "")
}

func isColdStart(obj metav1.Object) bool {
	return isClaimed(obj) && obj.GetLabels()[poolLabel] != "" && obj.GetAnnotations()[restoreAnnotation] == ""
}
