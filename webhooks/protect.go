package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// Deletions reads what the verdict on the delete of a member, a Sandbox or a
// bare Pod, depends on.
type Deletions interface {
	Deletion(ctx context.Context, member *unstructured.Unstructured, now time.Time) (freshness.Deletion, error)
	// AnswerDelete is the status of a refused delete, after which whoever asked leaves the
	// member alone, or looks again.
	AnswerDelete() (code int32, reason metav1.StatusReason)
}

// Protect keeps a claim's sandbox, or the Pod that it runs in, from the delete
// that its former pool's controller meant for an idle member. Its webhook's
// failurePolicy is Ignore, and what cannot be decided is allowed: no delete ever
// waits for Freshbind.
type Protect struct {
	Deletions Deletions
	Modes     *Modes
	Clock     clock.PassiveClock
	Timeout   time.Duration
}

var _ admission.Handler = (*Protect)(nil)

// Handle refuses a delete in the status that the platform says.
func (p *Protect) Handle(ctx context.Context, req admission.Request) admission.Response {
	member, err := decodeObject(req.OldObject.Raw, req.Namespace)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding oldObject: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	log := logf.FromContext(ctx).V(2)
	d, err := p.Deletions.Deletion(ctx, member, p.Clock.Now())
	if err != nil {
		log.Info("Let a delete pass unjudged", "sandbox", member.GetName(), "reason", err.Error())
		return admission.Allowed("")
	}
	v := freshness.JudgeDelete(d)
	// What its pool said when it was made, or began to say, is on the member.
	// Where the mode cannot be read the last one known will do: that a claim has the member
	// is certain.
	mode, _ := p.Modes.Of(ctx, req.Namespace, member.GetLabels()[settings.EnforcementKey])
	o := outcome{Verdict: v, mode: mode}
	log.Info("Judged delete", "sandbox", member.GetName(), "claim", d.Owner.Name, "verdict", o.verdict(), "mode", mode)
	resp := admission.Allowed("")
	if !v.Allowed && mode == settings.Enforce {
		code, reason := p.Deletions.AnswerDelete()
		resp = admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: code, Reason: reason,
			Message: fmt.Sprintf("%s: %s", v.Reason, v.Detail),
		}}}
	}
	resp.AuditAnnotations = map[string]string{"verdict": o.verdict(), "reason": o.reason(), "mode": string(mode)}
	return resp
}
