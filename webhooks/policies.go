package webhooks

import (
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Policies are rules that the API server applies by itself: they need no call,
// and hold while Freshbind is down. They hold wherever binds are enforced,
// whichever way that was said.
type Policies struct {
	Validating        []*admissionregistrationv1.ValidatingAdmissionPolicy
	ValidatingBinding []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	// Mutating policies are served from Kubernetes 1.36 on (KEP-3962). None is
	// for a custom resource: until the API server has noticed a CRD's schema,
	// writes that such a policy matches fail, whatever its failurePolicy says
	// (seen with v1.37.1).
	Mutating        []*admissionregistrationv1.MutatingAdmissionPolicy
	MutatingBinding []*admissionregistrationv1.MutatingAdmissionPolicyBinding

	// suffix ends the names of all of them.
	suffix string
}

// PoolsPolicy is the name of the policy, and of its only binding, that keeps what Freshbind
// says on pools.
const PoolsPolicy = "freshbind-pools"

var (
	// outputsStay lets what Freshbind says be left out: whoever replaces a pool by what a
	// file says does that, and verdicts and rollouts are as strict without it.
	outputsStay = admissionregistrationv1.Validation{
		Expression: createsIt + ` || [` + quotedList(settings.Outputs()) + `].all(k, !(k in ` + annotationsOf("object") + `) || ` +
			`k in ` + annotationsOf("oldObject") + ` && ` + annotationsOf("object") + `[k] == ` + annotationsOf("oldObject") + `[k])`,
		Message: "metadata.annotations: only Freshbind sets and changes " + strings.Join(settings.Outputs(), ", ") + "; leave them out, or leave them as they are",
	}
	// outputsNotMadeUp lets a pool come back from a backup with everything but what loosens
	// verdicts, which Freshbind says during a rollout only.
	outputsNotMadeUp = admissionregistrationv1.Validation{
		Expression: `!(` + createsIt + `) || !('` + settings.AttributionKey + `' in ` + annotationsOf("object") + `) && ` +
			annotationsOf("object") + `[?'` + settings.AdmitKey + `'].orValue('') != '` + string(freshness.AdmitAny) + `'`,
		Message: "metadata.annotations: only Freshbind sets " + settings.AttributionKey + ", and " + settings.AdmitKey + " to " +
			string(freshness.AdmitAny) + "; create the pool without them",
	}
)

func annotationsOf(object string) string { return object + `.metadata.?annotations.orValue({})` }

// notBy is the condition that somebody else than this user makes the request.
func notBy(user string) []admissionregistrationv1.MatchCondition {
	return platform.When("not-freshbind", `request.userInfo.username != `+strconv.Quote(user))
}

// NewPolicies returns the policies for this scope.
func NewPolicies(a platform.Admission, s Scope) Policies {
	p := Policies{suffix: a.Suffix}
	places := s.places()
	notUs := notBy(s.Self)
	members := func(op admissionregistrationv1.OperationType) []admissionregistrationv1.NamedRuleWithOperations {
		return namedRules(a.Members.Group, "*", a.Members.Resource, op)
	}
	p.validate(places, "freshbind-stamp", members(update), notUs, stampStays, enforcementStays, birthStays, repairedStays)
	p.validate(places, "freshbind-born", members(create), platform.When("says-who-made-it", carriesBirth), admissionregistrationv1.Validation{
		Expression: s.byAPoolController(a),
		Message:    "metadata.annotations[" + settings.CreatedByKey + "]: says that a pool's controller created the sandbox; only that controller gets it",
	})
	for _, r := range a.Rules {
		p.validate(places, r.Name, members(update), r.Conditions, r.Validations...)
	}
	if a.Pools.Resource != "" {
		// A pool's own annotation may enforce its namespace, which no selector knows.
		everywhere := []place{{namespaces: s.namespaces()}}
		p.validate(everywhere, PoolsPolicy, namedRules(a.Pools.Group, "*", a.Pools.Resource, create, update), notUs, outputsStay, outputsNotMadeUp)
	}
	// Upstream's Sandbox controller copies template metadata onto Pods: a policy
	// that refused it would make Sandboxes not ready, so the change is undone.
	if restampsPods(a) {
		p.mutate(places, "freshbind-pod-stamp", namedRules("", "v1", "pods", update), slices.Concat(notUs, stampChanges), putBack)
	}
	return p
}

// place is where a policy holds.
type place struct {
	// suffix makes the binding's name.
	suffix              string
	namespaces, objects *metav1.LabelSelector
}

func (p place) resources() *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{NamespaceSelector: p.namespaces.DeepCopy(), ObjectSelector: p.objects.DeepCopy()}
}

// places are where binds are enforced: by a namespace's label or the default, by
// the pool that something was made for, and by a floor.
func (s Scope) places() []place {
	places := []place{{namespaces: s.enforced()}, {suffix: "-by-pool", namespaces: s.namespaces(), objects: enforcing()}}
	for i, floor := range s.Enforced {
		selected := s.namespaces()
		selected.MatchLabels = floor.MatchLabels
		selected.MatchExpressions = append(selected.MatchExpressions, floor.MatchExpressions...)
		places = append(places, place{suffix: "-by-floor-" + strconv.Itoa(i), namespaces: selected})
	}
	return places
}

func enforcing() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{settings.EnforcementKey: string(settings.Enforce)}}
}

func (p *Policies) validate(places []place, name string, of []admissionregistrationv1.NamedRuleWithOperations,
	conditions []admissionregistrationv1.MatchCondition, rules ...admissionregistrationv1.Validation,
) {
	name += p.suffix
	p.Validating = append(p.Validating, &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: of},
			MatchConditions:  conditions,
			FailurePolicy:    ptr.To(admissionregistrationv1.Fail),
			Validations:      rules,
		},
	})
	for _, at := range places {
		p.ValidatingBinding = append(p.ValidatingBinding, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   typeMeta("ValidatingAdmissionPolicyBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: name + at.suffix},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        name,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
				MatchResources:    at.resources(),
			},
		})
	}
}

func (p *Policies) mutate(places []place, name string, rules []admissionregistrationv1.NamedRuleWithOperations,
	conditions []admissionregistrationv1.MatchCondition, patch string,
) {
	name += p.suffix
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
	for _, at := range places {
		p.MutatingBinding = append(p.MutatingBinding, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			TypeMeta:   typeMeta("MutatingAdmissionPolicyBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: name + at.suffix},
			Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name, MatchResources: at.resources()},
		})
	}
}

func namedRules(group, version, resource string, ops ...admissionregistrationv1.OperationType) []admissionregistrationv1.NamedRuleWithOperations {
	return []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: platform.On(group, version, resource, ops...)}}
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

// Objects returns all policies and their bindings.
func (p Policies) Objects() []client.Object {
	var out []client.Object
	for _, o := range p.Validating {
		out = append(out, o)
	}
	for _, o := range p.ValidatingBinding {
		out = append(out, o)
	}
	for _, o := range p.Mutating {
		out = append(out, o)
	}
	for _, o := range p.MutatingBinding {
		out = append(out, o)
	}
	return out
}
