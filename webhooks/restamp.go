package webhooks

import (
	"context"
	"net/http"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// RestampPath is where Restamp is served.
const RestampPath = "/restamp"

// Restamp puts a changed stamp of a Pod back where binds are enforced. Its webhook
// is called for such changes only.
type Restamp struct{ Modes *Modes }

var _ admission.Handler = Restamp{}

// Handle answers with a patch of that one label.
func (r Restamp) Handle(ctx context.Context, req admission.Request) admission.Response {
	old, obj, err := decode(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	// Its webhook's failurePolicy is Ignore: what the cache knows will do. That is
	// never an error.
	if act, _ := r.Modes.Known(ctx, req.Namespace, old.GetLabels()[settings.EnforcementKey]); !act {
		return admission.Allowed("")
	}
	return admission.Patched("", stampPatch(obj.GetLabels(), old.GetLabels()[settings.StampKey])...)
}

// RestampName is the name of the webhook that Scope.Restamp adds.
const RestampName = "restamp-pod.freshbind.dev"

// restampHook does what the mutating policy does, where the API server serves
// none (before Kubernetes 1.36). self is the user that Freshbind runs as.
func restampHook(self string) Hook {
	return Hook{
		Name: RestampName, Path: RestampPath, FailOpen: true, Timeout: 2 * time.Second,
		rules:      []admissionregistrationv1.RuleWithOperations{platform.On("", "v1", "pods", update)},
		conditions: slices.Concat(notBy(self), stampChanges),
	}
}
