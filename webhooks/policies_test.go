package webhooks

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
)

// What the policies' expressions mean is tested in test/cel and on an API server;
// here, that each is bound, denies, and holds wherever binds are enforced.
func TestPoliciesHoldWhereverBindsAreEnforced(t *testing.T) {
	exempt := metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"home", "kube-system"}}
	label := map[string]string{settings.EnforcementKey: "enforce"}
	byPool := admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{exempt}},
		ObjectSelector:    &metav1.LabelSelector{MatchLabels: label},
	}
	selects := func(labels map[string]string, more ...metav1.LabelSelectorRequirement) admissionregistrationv1.MatchResources {
		return admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
			MatchLabels: labels, MatchExpressions: append([]metav1.LabelSelectorRequirement{exempt}, more...),
		}}
	}
	team := metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpExists}
	cases := map[string]struct {
		scope Scope
		want  map[string]admissionregistrationv1.MatchResources
	}{
		"where a label says so": {Scope{}, map[string]admissionregistrationv1.MatchResources{"": selects(label), "-by-pool": byPool}},
		"by default": {Scope{EnforcedByDefault: true}, map[string]admissionregistrationv1.MatchResources{
			"": selects(nil, metav1.LabelSelectorRequirement{
				Key: settings.EnforcementKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"audit"},
			}),
			"-by-pool": byPool,
		}},
		"by floors": {
			Scope{Enforced: []metav1.LabelSelector{{MatchLabels: map[string]string{"tier": "prod"}}, {MatchExpressions: []metav1.LabelSelectorRequirement{team}}}},
			map[string]admissionregistrationv1.MatchResources{
				"": selects(label), "-by-pool": byPool,
				"-by-floor-0": selects(map[string]string{"tier": "prod"}), "-by-floor-1": selects(nil, team),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.scope.Exempt = []string{"home"}
			p := NewPolicies(agentsandbox.Admission(), tc.scope)
			got, want := map[string]admissionregistrationv1.MatchResources{}, map[string]admissionregistrationv1.MatchResources{}
			for _, policy := range p.Validating {
				if policy.Name == PoolsPolicy {
					want[policy.Name] = admissionregistrationv1.MatchResources{NamespaceSelector: byPool.NamespaceSelector}
					continue
				}
				for suffix, resources := range tc.want {
					want[policy.Name+suffix] = resources
				}
			}
			for _, policy := range p.Mutating {
				for suffix, resources := range tc.want {
					want[policy.Name+suffix] = resources
				}
			}
			for _, b := range p.ValidatingBinding {
				got[b.Name] = *b.Spec.MatchResources
				if !strings.HasPrefix(b.Name, b.Spec.PolicyName) || !slices.Equal(b.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}) {
					t.Errorf("binding %s is of %s and does %v", b.Name, b.Spec.PolicyName, b.Spec.ValidationActions)
				}
			}
			for _, b := range p.MutatingBinding {
				got[b.Name] = *b.Spec.MatchResources
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("bindings (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestHowPoliciesFail(t *testing.T) {
	p := NewPolicies(agentsandbox.Admission(), Scope{})
	for _, policy := range p.Validating {
		if got := *policy.Spec.FailurePolicy; got != admissionregistrationv1.Fail {
			t.Errorf("%s: failurePolicy %s, want Fail", policy.Name, got)
		}
	}
	for _, policy := range p.Mutating {
		if got := *policy.Spec.FailurePolicy; got != admissionregistrationv1.Ignore {
			t.Errorf("%s: failurePolicy %s, want Ignore: no write of a Pod may fail for a stamp", policy.Name, got)
		}
	}
}

// A used sandbox stays used whoever asks; a stamp is ours to write.
func TestWhomThePoliciesExempt(t *testing.T) {
	const self = `system:serviceaccount:a:"b"`
	p := NewPolicies(agentsandbox.Admission(), Scope{Self: self})
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
	want := map[string]bool{
		"freshbind-stamp": true, "freshbind-born": false, "freshbind-used": false, "freshbind-owners": false, "freshbind-pools": true, "freshbind-pod-stamp": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exempt (-want,+got):\n%s", diff)
	}
}
