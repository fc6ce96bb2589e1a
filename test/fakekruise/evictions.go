package fakekruise

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// podWebhook keeps everybody but the Sandbox's controller from deleting or evicting its
// Pod, for as long as the Sandbox is there.
type podWebhook struct{ client dynamic.Interface }

// NewPodWebhook returns what answers PodWebhooks.
func NewPodWebhook(cfg *rest.Config) (http.Handler, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for the webhook of pods: %w", err)
	}
	return &podWebhook{client}, nil
}

// PodWebhooks have the API server ask at a URL about deletes and evictions of Pods.
func PodWebhooks(url string, ca []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	hook := func(name, resource string, op admissionregistrationv1.OperationType) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{
			Name: name, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{op},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			}},
			FailurePolicy: ptr.To(admissionregistrationv1.Ignore), SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}
	}
	out := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "validating-webhook-configuration"}}
	deletes := hook("v-pod-delete.kb.io", "pods", admissionregistrationv1.Delete)
	deletes.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{labelCreated: "sandbox"}}
	out.Webhooks = append(out.Webhooks, deletes, hook("v-pod-eviction.kb.io", "pods/eviction", admissionregistrationv1.Create))
	return out
}

func (h *podWebhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no AdmissionReview", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if why, err := h.refuses(r, review.Request); err != nil || why != "" {
		if err != nil {
			why = err.Error()
		}
		review.Response.Allowed = false
		review.Response.Result = &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: why}
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// refuses says why; "" for not at all.
func (h *podWebhook) refuses(r *http.Request, req *admissionv1.AdmissionRequest) (string, error) {
	if req.UserInfo.Username == ControllerUser {
		return "", nil
	}
	pod, err := h.client.Resource(pods).Namespace(req.Namespace).Get(r.Context(), req.Name, metav1.GetOptions{})
	if err != nil || pod.GetDeletionTimestamp() != nil || pod.GetLabels()[labelCreated] != "sandbox" {
		return "", ignoreNotFound(err)
	}
	box, err := h.client.Resource(Sandboxes).Namespace(req.Namespace).Get(r.Context(), req.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil || box.GetDeletionTimestamp() != nil || !owns(box, pod) {
		return "", err
	}
	return fmt.Sprintf("cannot delete/evict pod %s/%s: corresponding sandbox exists. Please delete the sandbox instead", req.Namespace, req.Name), nil
}

func owns(box, pod *unstructured.Unstructured) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	return ref != nil && ref.Kind == "Sandbox" && ref.UID == box.GetUID()
}
