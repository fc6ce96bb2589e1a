package kruise

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fields"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

// Deletion reads what the verdict on a delete by upstream's controllers depends on. They
// name no UID and no version, and decide by their caches: they delete what was dead when a
// SandboxSet had it (deleteDeadSandboxes), and what had come to its shutdownTime
// (handleShutdownTimeout), although it was extended since, or another has it now.
//
// They end on purpose what has come to its time, what was let go and could not be
// recycled, and what failed while it was made ready for a SandboxClaim
// (clearFailedSandbox). All have one account. So what a SandboxClaim has is judged once
// that is completed, and nothing fails for it any more. What fails for a user of E2B is
// deleted by the E2B server, which nobody asks about.
func (p *Platform) Deletion(ctx context.Context, sandbox *unstructured.Unstructured, now time.Time) (freshness.Deletion, error) {
	d := freshness.Deletion{Sandbox: sandbox.GetName()}
	if poolOf(sandbox).UID != "" || !isClaimed(sandbox) || isLetGo(sandbox) || hasEnded(sandbox) {
		return d, nil
	}
	d.Owner = claimOf(sandbox)
	d.SandboxExpired = platform.Past(fields.String(sandbox.Object, "spec", "shutdownTime"), now)
	hint, isClaim := sandbox.GetLabels()[claimNameLabel]
	if d.Owner.UID == "" || d.SandboxExpired {
		return d, nil
	}
	if !isClaim {
		d.Claim = &freshness.Claim{UID: d.Owner.UID}
		return d, nil
	}
	claim, err := p.claim(ctx, sandbox.GetNamespace(), hint, d.Owner.UID)
	if err != nil {
		return freshness.Deletion{}, fmt.Errorf("judging the delete of sandbox %s: %w", d.Sandbox, err)
	}
	if claim != nil && fields.String(claim.Object, "status", "phase") == phaseCompleted {
		d.Claim = &freshness.Claim{UID: string(claim.GetUID()), Deleting: claim.GetDeletionTimestamp() != nil}
	}
	return d, nil
}

// isLetGo: whoever had it wants it no more, and it is on its way back, or to its end.
func isLetGo(sandbox *unstructured.Unstructured) bool {
	return isReturning(sandbox) || sandbox.GetAnnotations()[letGoAnnotation] == yes
}

// hasEnded: nobody can use it any more.
func hasEnded(sandbox *unstructured.Unstructured) bool {
	return slices.Contains([]string{"Succeeded", "Failed", "Terminating"}, fields.String(sandbox.Object, "status", "phase"))
}

// AnswerDelete is the status of a refused delete: upstream's controllers look again after
// any, and 409 says why.
func (*Platform) AnswerDelete() (code int32, reason metav1.StatusReason) {
	return http.StatusConflict, metav1.StatusReasonConflict
}
