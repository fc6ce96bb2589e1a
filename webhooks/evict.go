package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/settings"
)

// Evictions says what becomes of Pods that somebody evicts.
type Evictions interface {
	// Replaced is the idle member that a Pod keeps on a node which is to be empty, and
	// what its pool says of its own enforcement; "" where none does.
	Replaced(ctx context.Context, namespace, pod string) (member, enforcement string, err error)
}

// Evict has evictions wait of Pods that refuse them, while Freshbind replaces their idle
// members: by the status after which kubectl drain and autoscalers try again. Its
// webhook's failurePolicy is Ignore, and what cannot be decided is allowed: others answer.
type Evict struct {
	Evictions Evictions
	Modes     *Modes
	Timeout   time.Duration
}

var _ admission.Handler = (*Evict)(nil)

// Handle answers 429 TooManyRequests, as the API server does for a PodDisruptionBudget.
func (e *Evict) Handle(ctx context.Context, req admission.Request) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	log := logf.FromContext(ctx).V(2)
	member, enforcement, err := e.Evictions.Replaced(ctx, req.Namespace, req.Name)
	mode := settings.Audit
	if err == nil && member != "" {
		mode, err = e.Modes.Of(ctx, req.Namespace, enforcement)
	}
	if err != nil {
		log.Info("Let an eviction pass unjudged", "pod", req.Name, "reason", err.Error())
		return admission.Allowed("")
	}
	log.Info("Judged eviction", "pod", req.Name, "replaces", member, "mode", mode)
	if mode != settings.Enforce {
		return admission.Allowed("")
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: fmt.Sprintf("sandbox %s is idle, and its node is being emptied: Freshbind replaces it as soon as its pool can do without it", member),
	}}}
}
