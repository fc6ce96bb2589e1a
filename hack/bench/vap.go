package main

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// sameImages is the check that somebody can write without a webhook: a sandbox runs the
// images of the template, as the API server's own watch shows that. The watch may be late,
// and CEL looks up nothing else: neither pool, Pod nor node.
const sameImages = `object.spec.podTemplate.spec.containers.map(c, c.image) == params.spec.podTemplate.spec.containers.map(c, c.image)`

const otherImages = "the sandbox runs other images than the template"

// comparing is a ValidatingAdmissionPolicy for the binds of one namespace.
func comparing(namespace string) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	binds := agentsandbox.Admission().Requests[platform.Binds]
	var rules []admissionregistrationv1.NamedRuleWithOperations
	for _, rule := range binds.Rules {
		rules = append(rules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: rule})
	}
	meta := metav1.ObjectMeta{Name: namespace + ".bench.freshbind.dev"}
	templates := upstream.SandboxTemplates.WithVersion(builders.V1Beta1).GroupVersion().String()
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				ParamKind:        &admissionregistrationv1.ParamKind{APIVersion: templates, Kind: "SandboxTemplate"},
				FailurePolicy:    ptr.To(admissionregistrationv1.Fail),
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: rules},
				MatchConditions:  binds.Conditions,
				Validations:      []admissionregistrationv1.Validation{{Expression: sameImages, Message: otherImages}},
			},
		}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        meta.Name,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
				ParamRef:          &admissionregistrationv1.ParamRef{Name: crowdTemplate, ParameterNotFoundAction: ptr.To(admissionregistrationv1.DenyAction)},
				MatchResources:    &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}},
			},
		}
}

// installPolicy has the API server compare what is bound in a namespace, and waits until
// it does: other images are refused, and those of the template are bound.
func installPolicy(ctx context.Context, kube kubernetes.Interface, namespace string, b *binder) error {
	policy, binding := comparing(namespace)
	api := kube.AdmissionregistrationV1()
	if _, err := api.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create policy: %w", err)
	}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create binding of policy: %w", err)
	}
	stale := builders.SandboxFrom(b.bound[0]).Image("sandbox:v0").Obj()
	err := scenario.Poll(ctx, guardWithin, func(ctx context.Context) (bool, error) {
		if _, err := b.try(ctx, stale); err == nil || !strings.Contains(err.Error(), otherImages) {
			return false, ctx.Err()
		}
		_, err := b.bind(ctx, 0)
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait until the policy compares: %w", err)
	}
	return nil
}
