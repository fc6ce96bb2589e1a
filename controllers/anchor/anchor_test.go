package anchor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/webhooks"
)

func TestTheNamespaceOwnsWhatIsThere(t *testing.T) {
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "gone", UID: "old"}
	ours := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "home", UID: "new"}
	cases := map[string]struct {
		owners, want []metav1.OwnerReference
	}{
		"nobody's":       {nil, []metav1.OwnerReference{ours}},
		"ours already":   {[]metav1.OwnerReference{ours}, []metav1.OwnerReference{ours}},
		"somebody's too": {[]metav1.OwnerReference{other}, []metav1.OwnerReference{other, ours}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "home", UID: "new"}},
				&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooks.ConfigurationName, OwnerReferences: tc.owners}},
				&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "another"}},
			).Build()
			a := New(c, c, "home", agentsandbox.Admission(), webhooks.Scope{}, clocktesting.NewFakeClock(metav1.Now().Time))
			for range 2 {
				if err := a.Hold(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			var list admissionregistrationv1.ValidatingWebhookConfigurationList
			if err := c.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			got := map[string][]metav1.OwnerReference{}
			for _, o := range list.Items {
				got[o.Name] = o.OwnerReferences
			}
			want := map[string][]metav1.OwnerReference{webhooks.ConfigurationName: tc.want, "another": nil}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("owners (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestWithoutItsNamespaceNothingIsOwned(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: webhooks.ConfigurationName},
	}).Build()
	if err := New(c, c, "home", agentsandbox.Admission(), webhooks.Scope{}, clocktesting.NewFakeClock(metav1.Now().Time)).Hold(t.Context()); err == nil {
		t.Error("no error, though the namespace is not there")
	}
	var stored admissionregistrationv1.MutatingWebhookConfiguration
	if err := c.Get(t.Context(), client.ObjectKey{Name: webhooks.ConfigurationName}, &stored); err != nil {
		t.Fatal(err)
	}
	if len(stored.OwnerReferences) > 0 {
		t.Errorf("owners are %v", stored.OwnerReferences)
	}
}
