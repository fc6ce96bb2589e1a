package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/advice"
)

// Adviser predicts what a write by a person leads to.
type Adviser interface {
	// Inputs returns what the object says to Freshbind, without a read; a nil
	// object says nothing.
	Inputs(obj *unstructured.Unstructured) advice.Inputs
	// Predict returns nil when nobody has to be told anything. An error says
	// that it could not be told. old is nil for a CREATE.
	Predict(ctx context.Context, old, obj *unstructured.Unstructured) (advice.Effect, error)
}

// Advise tells people, in warnings, what their write leads to, and refuses
// inputs that cannot be read: in every mode, because only who uses Freshbind
// sets them. Its webhook's failurePolicy is Ignore, and what cannot be told is
// not told: no write ever waits for advice.
type Advise struct {
	Adviser Adviser
	// Timeout bounds one piece of advice.
	Timeout time.Duration
}

var _ admission.Handler = (*Advise)(nil)

// Handle has no side effects, so dry runs are told the same.
func (a *Advise) Handle(ctx context.Context, req admission.Request) admission.Response {
	old, obj, err := decode(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	before, after := a.inputs(req, old), a.inputs(req, obj)
	if errs := advice.Refusals(before, after); len(errs) > 0 {
		return refused(kindOf(req), req.Name, errs)
	}
	lines := advice.Ignored(before, after)
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	log := logf.FromContext(ctx).V(2)
	effect, err := a.Adviser.Predict(ctx, old, obj)
	switch {
	case err != nil:
		log.Info("Could not find out the effects of a write", "kind", req.Kind.Kind, "name", req.Name, "reason", err.Error())
	case effect != nil:
		lines = append(lines, effect.Lines()...)
	}
	log.Info("Advised", "kind", req.Kind.Kind, "name", req.Name, "lines", lines)
	return admission.Allowed("").WithWarnings(lines...)
}

// inputs: a namespace is nobody's platform.
func (a *Advise) inputs(req admission.Request, obj *unstructured.Unstructured) advice.Inputs {
	if kindOf(req) == (schema.GroupKind{Kind: namespaceKind}) {
		if obj == nil {
			return advice.Inputs{}
		}
		return advice.Inputs{Labels: obj.GetLabels()}
	}
	return a.Adviser.Inputs(obj)
}

func kindOf(req admission.Request) schema.GroupKind {
	return schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}
}

// refused answers as the API server answers fields of its own that are wrong.
func refused(kind schema.GroupKind, name string, errs field.ErrorList) admission.Response {
	status := apierrors.NewInvalid(kind, name, errs).Status()
	// The API server puts the webhook's name in front of it.
	status.Message = fmt.Sprintf("%s %q is invalid: %v", kind.Kind, name, errs.ToAggregate())
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}
