package agentsandbox

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/freshness"
)

// Answer returns the status that makes unmodified controllers do the right
// thing after a denial. Measured with v0.4.6, v0.5.6 and v1.0.3:
//
//   - A bind answered 404 makes the claim go on to the next member, and this
//     one is never offered again; right when the member can never be bound.
//     A bind answered 409 is tried again, and the member is not deleted for it;
//     it has to be offered again all the same (OfferPatch).
//   - A cold start answered AlreadyExists is tried again every 200 ms;
//     Conflict takes seconds.
//   - A birth is answered 403: AlreadyExists makes the API server try eight
//     names. So is a controller of another kind, which is no controller of
//     theirs.
//
// details.retryAfterSeconds is never set: client-go would sleep inside of the
// controller's worker.
func (*Platform) Answer(op freshness.Operation, f freshness.Fault) (code int32, reason metav1.StatusReason) {
	switch {
	case op == freshness.ColdStart:
		return http.StatusConflict, metav1.StatusReasonAlreadyExists
	case op == freshness.Birth, op == freshness.ForeignController:
		return http.StatusForbidden, metav1.StatusReasonForbidden
	case f == freshness.FaultMember:
		return http.StatusNotFound, metav1.StatusReasonNotFound
	}
	return http.StatusConflict, metav1.StatusReasonConflict
}

// Undecided is an answer after which all of upstream's controllers try again.
func (*Platform) Undecided(freshness.Operation) (code int32, reason metav1.StatusReason) {
	return http.StatusInternalServerError, ""
}
