package scenario

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/upstream"
)

// TestWaitGuardedFails: without a guard, and with one that nobody reaches.
func TestWaitGuardedFails(t *testing.T) {
	c, err := controlplane.Start(t.Context(), controlplane.Options{Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	const release = "v1.0.3"
	if err := upstream.InstallCRDs(t.Context(), c, release); err != nil {
		t.Fatal(err)
	}
	n, err := CreateNamespace(t.Context(), c.Config(), builders.V1Beta1, "guarded", Enforce())
	if err != nil {
		t.Fatal(err)
	}
	const within = 100 * time.Millisecond
	if err := n.WaitGuarded(t.Context(), within); !TooLate(err) || errors.Is(err, ErrUnreachable) {
		t.Errorf("without a guard: %v, want that a denied write is not denied", err)
	}

	// Port 1 is nobody's.
	hook := webhookAt("https://127.0.0.1:1", nil, admissionregistrationv1.Create)
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), hook, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// On a machine that has more to do a call takes longer than that.
	grown := within
	err = until(t.Context(), 10*time.Minute, "that the webhook is called in vain", func(ctx context.Context) (string, bool, error) {
		grown = min(2*grown, time.Minute)
		err := n.WaitGuarded(ctx, grown)
		return message(err), errors.Is(err, ErrUnreachable), nil
	})
	if err != nil {
		t.Error(err)
	}
}

// webhookAt is a webhook on Sandboxes that is not Freshbind's.
func webhookAt(url string, ca []byte, operation admissionregistrationv1.OperationType) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "careless"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "careless.freshbind.dev",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To(url), CABundle: ca},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{operation},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{builders.GroupCore}, APIVersions: []string{"*"}, Resources: []string{"sandboxes"},
				},
			}},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}
