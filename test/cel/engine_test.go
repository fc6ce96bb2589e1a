package cel

import (
	"slices"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	celplugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/webhooks"
)

const self = "system:serviceaccount:freshbind-system:freshbind"

// write is one request for a Sandbox; old is nil for a CREATE, and obj for a DELETE.
type write struct {
	old, obj *unstructured.Unstructured
	user     string
}

// expression is a validation, as the API server's library takes it.
type expression string

func (e expression) GetExpression() string  { return string(e) }
func (expression) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }

// hook is a compiled webhook.
type hook struct {
	ops     []admissionregistrationv1.OperationType
	in      labels.Selector
	matcher matchconditions.Matcher
}

// policy is a compiled policy.
type policy struct {
	hook
	rules []celplugin.ConditionEvaluator
}

// rendered is everything that the API server evaluates for Sandboxes.
type rendered struct {
	hooks    map[string]hook
	policies map[string]policy
	// podHooks are those that are about Pods.
	podHooks map[string]hook
	// poolPolicies are those that are about pools.
	poolPolicies map[string]policy
}

// render compiles what is installed for agent-sandbox, after an edit if there is one.
func render(t testing.TB, edits ...func(*admissionregistrationv1.ValidatingWebhookConfiguration)) rendered {
	t.Helper()
	return renderOf(t, agentsandbox.Admission(), edits...)
}

// renderOf compiles what is installed for a platform.
func renderOf(t testing.TB, a platform.Admission, edits ...func(*admissionregistrationv1.ValidatingWebhookConfiguration)) rendered {
	t.Helper()
	compiler := celplugin.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	var vars celplugin.OptionalVariableDeclarations
	matcher := func(conditions []admissionregistrationv1.MatchCondition) matchconditions.Matcher {
		var all []celplugin.ExpressionAccessor
		for _, c := range conditions {
			all = append(all, (*matchconditions.MatchCondition)(&c))
		}
		compiled := compiler.CompileCondition(all, vars, environment.StoredExpressions)
		for _, err := range compiled.CompilationErrors() {
			t.Fatal(err)
		}
		return matchconditions.NewMatcher(compiled, ptr.To(admissionregistrationv1.Fail), "test", "test", "test")
	}
	out := rendered{map[string]hook{}, map[string]policy{}, map[string]hook{}, map[string]policy{}}
	scope := webhooks.Scope{Self: self}
	mutating, validating := webhooks.Configurations(a, webhooks.Endpoint{URL: "https://h"}, scope)
	for _, edit := range edits {
		edit(validating)
	}
	selector := func(s *metav1.LabelSelector) labels.Selector {
		in, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	add := func(name string, rules []admissionregistrationv1.RuleWithOperations, in *metav1.LabelSelector, conditions []admissionregistrationv1.MatchCondition) {
		switch rules[0].Resources[0] {
		case "sandboxes":
			out.hooks[name] = hook{rules[0].Operations, selector(in), matcher(conditions)}
		case "pods":
			out.podHooks[name] = hook{rules[0].Operations, selector(in), matcher(conditions)}
		}
	}
	for _, w := range mutating.Webhooks {
		add(w.Name, w.Rules, w.NamespaceSelector, w.MatchConditions)
	}
	for _, w := range validating.Webhooks {
		add(w.Name, w.Rules, w.NamespaceSelector, w.MatchConditions)
	}
	for _, p := range webhooks.NewPolicies(a, scope).Validating {
		c := policy{hook: hook{p.Spec.MatchConstraints.ResourceRules[0].Operations, labels.Everything(), matcher(p.Spec.MatchConditions)}}
		for _, v := range p.Spec.Validations {
			rule := compiler.CompileCondition([]celplugin.ExpressionAccessor{expression(v.Expression)}, vars, environment.StoredExpressions)
			for _, err := range rule.CompilationErrors() {
				t.Fatal(err)
			}
			c.rules = append(c.rules, rule)
		}
		if p.Spec.MatchConstraints.ResourceRules[0].Resources[0] == a.Pools.Resource {
			out.poolPolicies[p.Name] = c
			continue
		}
		out.policies[p.Name] = c
	}
	return out
}

func (w write) attributes() *admission.VersionedAttributes {
	return w.with(nil)
}

// with is the request with options.
func (w write) with(options runtime.Object) *admission.VersionedAttributes {
	op, of := admission.Create, w.obj
	var obj, old runtime.Object
	if w.old != nil {
		op, of, old = admission.Update, w.old, w.old
	}
	if w.obj != nil {
		obj = w.obj
	} else {
		op = admission.Delete
	}
	gvk := of.GroupVersionKind()
	record := admission.NewAttributesRecord(obj, old, gvk, of.GetNamespace(), of.GetName(),
		gvk.GroupVersion().WithResource("sandboxes"), "", op, options, false, &user.DefaultInfo{Name: w.user})
	v := &admission.VersionedAttributes{Attributes: record, VersionedKind: gvk}
	if w.obj != nil {
		v.VersionedObject.Set(w.obj)
	}
	if w.old != nil {
		v.VersionedOldObject.Set(w.old)
	}
	return v
}

func (h hook) matches(t testing.TB, a *admission.VersionedAttributes) bool {
	t.Helper()
	if !slices.Contains(h.ops, admissionregistrationv1.OperationType(a.GetOperation())) {
		return false
	}
	result := h.matcher.Match(t.Context(), a, nil, nil)
	if result.Error != nil {
		t.Errorf("evaluating a condition: %v", result.Error)
	}
	return result.Matches
}

// enforced are the labels of a namespace that enforces.
var enforced = labels.Set{corev1.LabelMetadataName: "ns", settings.EnforcementKey: string(settings.Enforce)}

// asked returns the webhooks that are asked about a write in a namespace with those
// labels.
func (r rendered) asked(t testing.TB, w write, in labels.Set) []string {
	t.Helper()
	var names []string
	for name, h := range r.hooks {
		if h.in.Matches(in) && h.matches(t, w.attributes()) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// refusing returns the policies that refuse a write.
func (r rendered) refusing(t testing.TB, w write) []string {
	t.Helper()
	return refusing(t, r.policies, w)
}

func refusing(t testing.TB, policies map[string]policy, w write) []string {
	t.Helper()
	var names []string
	for name, p := range policies {
		if p.matches(t, w.attributes()) && !p.allows(t, w.attributes()) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (p policy) allows(t testing.TB, a *admission.VersionedAttributes) bool {
	t.Helper()
	request := celplugin.CreateAdmissionRequest(a.Attributes, metav1.GroupVersionResource(a.GetResource()), metav1.GroupVersionKind(a.VersionedKind))
	for _, rule := range p.rules {
		results, _, err := rule.ForInput(t.Context(), a, request, celplugin.OptionalVariableBindings{}, nil, apiservercel.RuntimeCELCostBudget)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Error != nil {
				t.Errorf("evaluating a rule: %v", r.Error)
			}
			if r.EvalResult != types.True {
				return false
			}
		}
	}
	return true
}

var (
	template = builders.MakeTemplate("ns", "python").Obj()
	pool     = builders.MakePool("ns", "python").UID("uid-pool").Obj()
	claim    = builders.MakeClaim("ns", "c1").UID("uid-claim").Obj()
	another  = builders.MakeClaim("ns", "c2").UID("uid-another").Obj()
	member   = builders.MakeMember(pool, template).Name("python-abc").Obj()
)

func owned(refs ...metav1.OwnerReference) *unstructured.Unstructured {
	return builders.SandboxFrom(member).Owners(refs...).Obj()
}

func plain(ref metav1.OwnerReference) metav1.OwnerReference {
	ref.Controller = nil
	return ref
}

func of(apiVersion, kind string, ref metav1.OwnerReference) metav1.OwnerReference {
	ref.APIVersion, ref.Kind = apiVersion, kind
	return ref
}
