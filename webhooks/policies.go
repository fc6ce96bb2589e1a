package webhooks

import (
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// Policies are rules that the API server applies by itself: they need no call,
// and hold while Freshbind is down. They hold in namespaces that enforce.
type Policies struct {
	Validating        []*admissionregistrationv1.ValidatingAdmissionPolicy
	ValidatingBinding []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	// Mutating policies are served from Kubernetes 1.36 on (KEP-3962). None is
	// for a custom resource: until the API server has noticed a CRD's schema,
	// writes that such a policy matches fail, whatever its failurePolicy says
	// (seen with v1.37.1).
	Mutating        []*admissionregistrationv1.MutatingAdmissionPolicy
	MutatingBinding []*admissionregistrationv1.MutatingAdmissionPolicyBinding
}

const (
	stampOf    = `.metadata.?labels['` + platform.StampKey + `'].orValue('')`
	boundToOf  = `.metadata.?annotations['` + platform.BoundToKey + `'].orValue('')`
	stampPath  = `'/metadata/labels/' + jsonpatch.escapeKey('` + platform.StampKey + `')`
	wasClaimed = `(oldObject` + boundToOf + ` != '' || ` + oldOwners + `.exists(o, ` + claimOwner + `))`
	// putBack gives a stamp the value that it had, or takes away one that was not
	// there.
	putBack = `oldObject` + stampOf + ` == '' ? [JSONPatch{op: 'remove', path: ` + stampPath + `}] : ` +
		`has(object.metadata.labels) ? [JSONPatch{op: 'add', path: ` + stampPath + `, value: oldObject` + stampOf + `}] : ` +
		`[JSONPatch{op: 'add', path: '/metadata/labels', value: {'` + platform.StampKey + `': oldObject` + stampOf + `}}]`
)

var stampChanges = when("changes-a-stamp", `object`+stampOf+` != oldObject`+stampOf)

// notBy is the condition that somebody else than this user makes the request.
func notBy(user string) []admissionregistrationv1.MatchCondition {
	return when("not-freshbind", `request.userInfo.username != `+strconv.Quote(user))
}

// NewPolicies returns the policies. self is the user that Freshbind runs as.
func NewPolicies(self string) Policies {
	var p Policies
	notUs := notBy(self)
	p.validate("freshbind-stamp", notUs, admissionregistrationv1.Validation{
		Expression: `object` + stampOf + ` == oldObject` + stampOf,
		Message:    "metadata.labels[" + platform.StampKey + "]: says what the sandbox was built from, and is Freshbind's to write",
	})
	// A used sandbox never goes back to a pool, whoever takes its owner away: the
	// next tenant would get it (upstream adopts what carries a pool's label).
	p.validate("freshbind-used", when("had-a-claim", wasClaimed),
		admissionregistrationv1.Validation{
			Expression: `!` + owners + `.exists(o, ` + poolOwner + `)`,
			Message:    "metadata.ownerReferences: this sandbox had a claim, and can never be a member of a pool again",
		},
		admissionregistrationv1.Validation{
			Expression: `oldObject` + boundToOf + ` == '' || object` + boundToOf + ` == oldObject` + boundToOf,
			Message:    "metadata.annotations[" + platform.BoundToKey + "]: says whose sandbox this is or was, and stays",
		})
	// Upstream's Sandbox controller copies template metadata onto Pods: a policy
	// that refused it would make Sandboxes not ready, so the change is undone.
	p.mutate("freshbind-pod-stamp", namedRules("", "v1", "pods", admissionregistrationv1.Update),
		slices.Concat(notUs, stampChanges), putBack)
	return p
}

func (p *Policies) validate(name string, conditions []admissionregistrationv1.MatchCondition, rules ...admissionregistrationv1.Validation) {
	p.Validating = append(p.Validating, &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: sandboxRules(admissionregistrationv1.Update)},
			MatchConditions:  conditions,
			FailurePolicy:    ptr.To(admissionregistrationv1.Fail),
			Validations:      rules,
		},
	})
	p.ValidatingBinding = append(p.ValidatingBinding, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicyBinding"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources:    &admissionregistrationv1.MatchResources{NamespaceSelector: enforcing()},
		},
	})
}

func (p *Policies) mutate(name string, rules []admissionregistrationv1.NamedRuleWithOperations,
	conditions []admissionregistrationv1.MatchCondition, patch string,
) {
	p.Mutating = append(p.Mutating, &admissionregistrationv1.MutatingAdmissionPolicy{
		TypeMeta:   typeMeta("MutatingAdmissionPolicy"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints:   &admissionregistrationv1.MatchResources{ResourceRules: rules},
			MatchConditions:    conditions,
			FailurePolicy:      ptr.To(admissionregistrationv1.Ignore),
			ReinvocationPolicy: admissionregistrationv1.IfNeededReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: patch},
			}},
		},
	})
	p.MutatingBinding = append(p.MutatingBinding, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		TypeMeta:   typeMeta("MutatingAdmissionPolicyBinding"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName:     name,
			MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: enforcing()},
		},
	})
}

func enforcing() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{platform.EnforcementKey: string(Enforce)}}
}

func sandboxRules(ops ...admissionregistrationv1.OperationType) []admissionregistrationv1.NamedRuleWithOperations {
	return namedRules(agentsandbox.CoreGroup, "*", "sandboxes", ops...)
}

func namedRules(group, version, resource string, ops ...admissionregistrationv1.OperationType) []admissionregistrationv1.NamedRuleWithOperations {
	r := rule(group, version, resource, "")
	r.Operations = ops
	return []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: r}}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
}

// WithoutMutating leaves out what API servers before Kubernetes 1.36 do not
// serve. Scope.Restamp takes its place.
func (p Policies) WithoutMutating() Policies {
	p.Mutating, p.MutatingBinding = nil, nil
	return p
}

// Only narrows the policies down to these namespaces; none given, they hold in
// all that enforce.
func (p Policies) Only(namespaces ...string) Policies {
	if len(namespaces) == 0 {
		return p
	}
	for _, b := range p.ValidatingBinding {
		named(b.Spec.MatchResources.NamespaceSelector, metav1.LabelSelectorOpIn, namespaces)
	}
	for _, b := range p.MutatingBinding {
		named(b.Spec.MatchResources.NamespaceSelector, metav1.LabelSelectorOpIn, namespaces)
	}
	return p
}

// Objects returns all policies and their bindings.
func (p Policies) Objects() []client.Object {
	var out []client.Object
	for i := range p.Validating {
		out = append(out, p.Validating[i], p.ValidatingBinding[i])
	}
	for i := range p.Mutating {
		out = append(out, p.Mutating[i], p.MutatingBinding[i])
	}
	return out
}
