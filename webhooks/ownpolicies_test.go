package webhooks

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// What the expressions mean is tried on an API server. Freshbind may write the
// policies that guard members: those that hold it are others.
func TestOwnPoliciesHoldFreshbindEverywhere(t *testing.T) {
	const self = `system:serviceaccount:a:"b"`
	others := map[string]bool{}
	for _, o := range NewPolicies(agentsandbox.Admission(), Scope{Self: self}).Objects() {
		others[o.GetName()] = true
	}
	p := NewOwnPolicies(agentsandbox.Admission(), self)
	conditions := append(platform.When("by-freshbind", `request.userInfo.username == `+strconv.Quote(self)),
		platform.When("not-a-dry-run", `!request.?dryRun.orValue(false)`)...)
	bound := map[string]bool{}
	for _, b := range p.ValidatingBinding {
		want := admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: b.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		}
		if diff := cmp.Diff(want, b.Spec); diff != "" {
			t.Errorf("binding %s (-want,+got):\n%s", b.Name, diff)
		}
		bound[b.Spec.PolicyName] = true
	}
	for _, policy := range p.Validating {
		if others[policy.Name] || !bound[policy.Name] {
			t.Errorf("%s: among the others %t, bound %t", policy.Name, others[policy.Name], bound[policy.Name])
		}
		if *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
			t.Errorf("%s: failurePolicy %s, want Fail", policy.Name, *policy.Spec.FailurePolicy)
		}
		if diff := cmp.Diff(conditions, policy.Spec.MatchConditions); diff != "" {
			t.Errorf("%s (-want,+got):\n%s", policy.Name, diff)
		}
	}
}

// The API server takes no policy that is about nothing.
func TestOwnPoliciesOfAPlatformThatOffersNothingAgain(t *testing.T) {
	a := agentsandbox.Admission()
	a.Own.Status = admissionregistrationv1.RuleWithOperations{}
	for _, policy := range NewOwnPolicies(a, "self").Validating {
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			if len(rule.Operations) == 0 {
				t.Errorf("%s is about nothing", policy.Name)
			}
		}
	}
}

// Freshbind is held where it writes, and only there.
func TestWhatOwnPoliciesAreAbout(t *testing.T) {
	bare := agentsandbox.Admission()
	delete(bare.Requests, platform.NewPods)
	bare.Own.Status, bare.Own.IdlePod, bare.Own.Template = admissionregistrationv1.RuleWithOperations{}, "", ""
	for name, tc := range map[string]struct {
		of   platform.Admission
		want map[string][]string
	}{
		"agent-sandbox": {agentsandbox.Admission(), map[string][]string{
			"freshbind-own-writes": {"sandboxes", "sandboxclaims", "sandboxwarmpools", "pods"}, "freshbind-own-status": {"sandboxes/status"},
			"freshbind-own-members": {"sandboxes"}, "freshbind-own-pods": {"pods"}, "freshbind-own-revisions": {"controllerrevisions"},
		}},
		"without Pods, status and revisions": {bare, map[string][]string{
			"freshbind-own-writes": {"sandboxes", "sandboxclaims", "sandboxwarmpools"}, "freshbind-own-members": {"sandboxes"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string][]string{}
			for _, policy := range NewOwnPolicies(tc.of, "self").Validating {
				for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
					got[policy.Name] = append(got[policy.Name], rule.Resources...)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("resources of policies (-want,+got):\n%s", diff)
			}
		})
	}
}

// A write has to pass all policies, so that one for each platform would let no write of
// revisions pass.
func TestOnePolicyIsOnTheRevisionsOfAllPlatforms(t *testing.T) {
	const name = "freshbind-own-revisions"
	one, other, none := platform.Admission{}, platform.Admission{Suffix: "-other"}, platform.Admission{}
	one.Own.Template, other.Own.Template = "o.kind == 'One'", "o.kind == 'Other'"
	for what, tc := range map[string]struct {
		policies Policies
		want     []string
	}{
		"of both":              {NewOwnPolicies(one, "self", other), []string{`(o.kind == 'One') || (o.kind == 'Other')`}},
		"of the other":         {NewOwnPolicies(other, "self", other), nil},
		"of one alone":         {NewOwnPolicies(one, "self"), []string{`(o.kind == 'One')`}},
		"where one has none":   {NewOwnPolicies(none, "self", other), []string{`(o.kind == 'Other')`}},
		"where nobody has any": {NewOwnPolicies(none, "self"), nil},
	} {
		var got []string
		for _, policy := range tc.policies.Validating {
			if strings.HasPrefix(policy.Name, name) {
				_, templates, _ := strings.Cut(policy.Spec.Validations[0].Expression, `.exists(o, `)
				templates, _, _ = strings.Cut(templates, `) || request.operation == 'DELETE'`)
				got = append(got, templates)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s, templates of the policy (-want,+got):\n%s", what, diff)
		}
	}
}
