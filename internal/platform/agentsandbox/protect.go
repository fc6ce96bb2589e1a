package agentsandbox

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

// ControllerUser is the identity of all of upstream's controllers, in every
// release as it is installed by default. Admission cannot tell them apart.
const ControllerUser = "system:serviceaccount:agent-sandbox-system:agent-sandbox-controller"

// Deletion reads what the verdict on the delete of a Sandbox depends on.
func (p *Platform) Deletion(ctx context.Context, sandbox *unstructured.Unstructured, now time.Time) (freshness.Deletion, error) {
	d := freshness.Deletion{
		Sandbox:        sandbox.GetName(),
		Owner:          controllerOf(sandbox),
		SandboxExpired: platform.Past(str(sandbox.Object, "spec", "shutdownTime"), now),
	}
	if d.Owner.Kind != freshness.OwnedByClaim {
		return d, nil
	}
	claim, err := p.Get(ctx, Claims, sandbox.GetNamespace(), d.Owner.Name)
	if err != nil {
		return freshness.Deletion{}, fmt.Errorf("judging the delete of sandbox %s: %w", d.Sandbox, err)
	}
	if claim != nil {
		d.Claim = claimOf(claim)
		d.ClaimExpired = claimExpired(claim, now)
	}
	return d, nil
}

// claimExpired follows upstream: at its shutdown time, or a while after the
// sandbox finished (extensions/controllers/sandboxclaim_controller.go,
// checkExpiration).
func claimExpired(claim *unstructured.Unstructured, now time.Time) bool {
	if platform.Past(str(claim.Object, "spec", "lifecycle", "shutdownTime"), now) {
		return true
	}
	ttl, ok, _ := unstructured.NestedInt64(claim.Object, "spec", "lifecycle", "ttlSecondsAfterFinished")
	status, _ := claim.Object["status"].(map[string]any)
	for _, c := range objects(status, "conditions") {
		switch str(c, "type") {
		case "Finished":
			finished, err := time.Parse(time.RFC3339, str(c, "lastTransitionTime"))
			if ok && err == nil && str(c, "status") == "True" && !finished.Add(time.Duration(ttl)*time.Second).After(now.Add(platform.ExpiryMargin)) {
				return true
			}
		case "Ready":
			if str(c, "reason") == "ClaimExpired" {
				return true
			}
		}
	}
	return false
}

// AnswerDelete is the status of a refused delete, which upstream's pool controller
// takes for "done".
func (*Platform) AnswerDelete() (code int32, reason metav1.StatusReason) {
	return http.StatusNotFound, metav1.StatusReasonNotFound
}
