package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
	"github.com/freshbind/freshbind/webhooks"
)

// On an overloaded machine an API server may fail a bind that Freshbind has allowed: it did not
// wait for the answer. The claim is not left to its controller's backoff, which is minutes long
// by then.
func TestAClaimWhoseAnswersAreLostIsTriedAgain(t *testing.T) {
	w := sharedWorld(t)
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Replicas: 1, Strategy: scenario.Recreate})
	hook, answer := s.loseAnswers()
	often := s.often("turned down", func() float64 { return w.turnedDown(t, hook) })
	s.must(s.CreateClaims(t.Context(), p, "c1"))
	often()
	answer()
	s.must(s.WaitClaims(t.Context(), within, "c1"))
	s.fresh(1)
}

// loseAnswers has one of Freshbind's validating webhooks give no answer to what claims get in this
// namespace, while the others do, until answer is called or the test ends.
func (s *stage) loseAnswers() (hook string, answer func()) {
	s.t.Helper()
	configurations := s.kube().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	lost := admissionregistrationv1.ValidatingWebhook{
		Name: s.Name + ".freshbind.dev",
		// Nobody listens there.
		ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.Name}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{upstream.Sandboxes.Group}, APIVersions: []string{"*"}, Resources: []string{upstream.Sandboxes.Resource},
			},
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "claimed", Expression: `object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == "SandboxClaim")`,
		}},
		FailurePolicy: ptr.To(admissionregistrationv1.Fail), SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}
	edit := func(ctx context.Context, change func(*admissionregistrationv1.ValidatingWebhookConfiguration)) {
		s.must(retry.RetryOnConflict(scenario.Conflicts, func() error {
			c, err := configurations.Get(ctx, webhooks.ConfigurationName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(c)
			_, err = configurations.Update(ctx, c, metav1.UpdateOptions{})
			return err
		}))
	}
	edit(s.t.Context(), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Webhooks = append(c.Webhooks, lost) })
	answer = sync.OnceFunc(func() {
		edit(context.WithoutCancel(s.t.Context()), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks = slices.DeleteFunc(c.Webhooks, func(h admissionregistrationv1.ValidatingWebhook) bool { return h.Name == lost.Name })
		})
	})
	s.t.Cleanup(answer)
	claim := builders.MakeClaim(s.Name, "probe").Obj()
	probe := builders.MakeMember(builders.MakePool(s.Name, "probe").Obj(), builders.MakeTemplate(s.Name, "probe").Obj()).
		Name("probe").Owners(builders.ControllerRef(claim)).Obj()
	s.eventually("answers are lost", func(ctx context.Context) (string, bool) {
		_, err := s.Resource(upstream.Sandboxes).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return fmt.Sprint(err), apierrors.IsInternalError(err) && strings.Contains(err.Error(), lost.Name)
	})
	return lost.Name, answer
}
