package webhooks

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	machinery "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/jsonobject"
)

// Reviews answers reviews by a handler. It does what controller-runtime's does, which goes
// over the objects in a review some times more, and which gets each review that is not as API
// servers write it.
type Reviews struct{ *admission.Webhook }

// NewReviews returns one for a handler.
func NewReviews(h admission.Handler) *Reviews {
	return &Reviews{&admission.Webhook{Handler: h}}
}

// ServeHTTP answers one review.
func (e *Reviews) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The entrance has read it, and bounds it.
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Type") == "application/json" {
		if req, ok := decodeReview(body); ok {
			resp := e.Handle(r.Context(), req)
			review := admissionv1.AdmissionReview{Response: &resp.AdmissionResponse}
			review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(reviewKind))
			// Who is gone needs no answer.
			_ = json.NewEncoder(w).Encode(review)
			return
		}
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
	e.Webhook.ServeHTTP(w, r)
}

const reviewKind = "AdmissionReview"

// decodeReview reads a review with a request. false leaves it to somebody else.
func decodeReview(body []byte) (admission.Request, bool) {
	left, objects, ok := jsonobject.Cut(body, "request", "object", "oldObject")
	if !ok {
		return admission.Request{}, false
	}
	var review admissionv1.AdmissionReview
	if err := machinery.Unmarshal(left, &review); err != nil || review.Request == nil {
		return admission.Request{}, false
	}
	if review.APIVersion != admissionv1.SchemeGroupVersion.String() || review.Kind != reviewKind {
		return admission.Request{}, false
	}
	review.Request.Object.Raw, review.Request.OldObject.Raw = orNone(objects["object"]), orNone(objects["oldObject"])
	return admission.Request{AdmissionRequest: *review.Request}, true
}

// orNone is nothing where there is null.
func orNone(object []byte) []byte {
	if string(object) == "null" {
		return nil
	}
	return object
}
