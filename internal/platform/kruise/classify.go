package kruise

import (
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

// Classify says what a write of a Sandbox is. A bind is the update after which the
// SandboxSet that controlled it does so no more, or somebody has it who had it not before,
// and a return the one after which a SandboxSet controls what none had. What pauses,
// resumes, upgrades or locks one keeps its owner, and is none of ours. So are clones, whose
// content is meant to be old, and Sandboxes that somebody makes by hand.
func (*Platform) Classify(op admissionv1.Operation, old, obj *unstructured.Unstructured) (platform.Write, bool) {
	w := platform.Write{Old: old, New: obj}
	switch {
	case op == admissionv1.Update && (isTaken(old, obj) || isGained(old, obj)):
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

// isGained: somebody has it who had it not before, whoever had it until then. Who takes one
// writes that and isTaken at once; apart from each other they would be two writes, of which
// neither looks like a bind.
func isGained(old, obj metav1.Object) bool {
	has := claimOf(obj).UID
	return has != "" && has != claimOf(old).UID
}

// isReturned: a SandboxSet has what none had. The platform does that to what it recycles, and
// to nothing else. The marks of use do not count: whoever gives it back can take them off
// before.
func isReturned(old, obj metav1.Object) bool {
	return poolOf(old).UID == "" && poolOf(obj).UID != ""
}

// isColdStart: it is claimed, and was made from a SandboxSet or for a SandboxClaim. A clone
// has neither label. Labels and annotations of a claim's own can empty both, and not take
// them away, and can say that it was restored from something.
func isColdStart(obj metav1.Object) bool {
	_, ofPool := obj.GetLabels()[poolLabel]
	_, forClaim := obj.GetLabels()[claimNameLabel]
	return isClaimed(obj) && (ofPool || forClaim)
}
