package webhooks

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/platform"
)

// What the policies' expressions mean is tested on an API server; here, that
// each is bound, denies, and holds where binds are enforced and nowhere else.
func TestPoliciesHoldWhereBindsAreEnforced(t *testing.T) {
	p := NewPolicies("freshbind")
	enforcing := &metav1.LabelSelector{MatchLabels: map[string]string{platform.EnforcementKey: "enforce"}}
	if len(p.Objects()) != 6 {
		t.Errorf("%d objects, want three policies and their bindings", len(p.Objects()))
	}
	for i, policy := range p.Validating {
		binding := p.ValidatingBinding[i].Spec
		want := admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policy.Name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources:    &admissionregistrationv1.MatchResources{NamespaceSelector: enforcing},
		}
		if diff := cmp.Diff(want, binding); diff != "" {
			t.Errorf("%s: binding (-want,+got):\n%s", policy.Name, diff)
		}
		if got := *policy.Spec.FailurePolicy; got != admissionregistrationv1.Fail {
			t.Errorf("%s: failurePolicy %s, want Fail", policy.Name, got)
		}
	}
	for i, policy := range p.Mutating {
		want := admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: enforcing},
		}
		if diff := cmp.Diff(want, p.MutatingBinding[i].Spec); diff != "" {
			t.Errorf("%s: binding (-want,+got):\n%s", policy.Name, diff)
		}
		if got := *policy.Spec.FailurePolicy; got != admissionregistrationv1.Ignore {
			t.Errorf("%s: failurePolicy %s, want Ignore: no write of a Pod may fail for a stamp", policy.Name, got)
		}
	}
}

// A used sandbox stays used whoever asks; a stamp is ours to write.
func TestWhomThePoliciesExempt(t *testing.T) {
	const self = `system:serviceaccount:a:"b"`
	p := NewPolicies(self)
	got := map[string]bool{}
	exempts := func(name string, conditions []admissionregistrationv1.MatchCondition) {
		for _, c := range conditions {
			got[name] = got[name] || c.Expression == `request.userInfo.username != `+strconv.Quote(self)
		}
	}
	for _, policy := range p.Validating {
		exempts(policy.Name, policy.Spec.MatchConditions)
	}
	for _, policy := range p.Mutating {
		exempts(policy.Name, policy.Spec.MatchConditions)
	}
	want := map[string]bool{"freshbind-stamp": true, "freshbind-used": false, "freshbind-pod-stamp": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exempt (-want,+got):\n%s", diff)
	}
}
