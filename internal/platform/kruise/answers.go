package kruise

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/freshness"
)

// Answer is the status of a denial. Seen with the claim package of September 2026: after
// 409 Conflict on a bind the E2B server takes another member, five in all; after any
// other status, 409 AlreadyExists among them, its user gets an error at once. A
// SandboxClaim's controller tries again two seconds after any. A birth is refused for
// good, and its controller makes another.
func (*Platform) Answer(op freshness.Operation, _ freshness.Fault) (code int32, reason metav1.StatusReason) {
	if op == freshness.Birth {
		return http.StatusForbidden, metav1.StatusReasonForbidden
	}
	return http.StatusConflict, metav1.StatusReasonConflict
}

// Undecided is the same: to the E2B server anything else is the end of the request.
func (p *Platform) Undecided(op freshness.Operation) (code int32, reason metav1.StatusReason) {
	return p.Answer(op, freshness.FaultNobody)
}
