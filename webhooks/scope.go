package webhooks

import (
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// What the names of a judged hook's variants begin with. Each variant is for other
// namespaces, so that no write is judged twice; two floors of several requirements
// each are the exception.
const (
	// OpenPrefix: in Scope.Open, with failurePolicy Ignore.
	OpenPrefix = "open-"
	// AuditPrefix: where neither label, default nor floor says enforce. A write goes
	// on when nobody answers. The path is the plain one: what answers knows the mode,
	// and a pool may say enforce.
	AuditPrefix = "audit-"
	// PoolPrefix: where a pool says enforce, and nothing else does (ClosePools).
	PoolPrefix = "pool-"
)

// Opened is the hook for where the failurePolicy is Ignore. It has a path of its
// own: a failurePolicy covers no answer that is given, so the handler has to know
// which of the two it serves.
func (h Hook) Opened() Hook {
	h.Path += "/open"
	h.FailOpen = true
	return h
}

// Judged are the hooks whose failurePolicy can be chosen (Scope).
func Judged() []Hook { return []Hook{BindHook, BindPodHook, ColdStartHook, ForeignControllerHook} }

// closed are the judged hooks, each with its failurePolicy, in some namespaces.
func (s Scope) closed(in *metav1.LabelSelector) []Hook {
	var hooks []Hook
	for _, h := range Judged() {
		if s.policyOf(h) == admissionregistrationv1.Ignore {
			h = h.Opened()
		} else {
			h.not = s.Open
		}
		h.in = in
		hooks = append(hooks, h)
	}
	return hooks
}

// opened are the judged hooks of the open namespaces, as far as they are not
// open everywhere.
func (s Scope) opened() []Hook {
	var hooks []Hook
	for _, h := range Judged() {
		if len(s.Open) > 0 && s.policyOf(h) != admissionregistrationv1.Ignore {
			h = h.Opened()
			h.Name, h.only = OpenPrefix+h.Name, s.Open
			hooks = append(hooks, h)
		}
	}
	return hooks
}

// audited are the judged hooks of the namespaces in which nothing says enforce.
func (s Scope) audited() []Hook {
	hooks := s.closed(s.besides(s.Enforced))
	for i := range hooks {
		hooks[i].Name, hooks[i].FailOpen = AuditPrefix+hooks[i].Name, true
	}
	return hooks
}

func (s Scope) policyOf(h Hook) admissionregistrationv1.FailurePolicyType {
	if h.Name == ColdStartHook.Name {
		return s.ColdStart
	}
	return s.Bind
}

// FloorConfigurations are the judged hooks for the namespaces that a floor enforces,
// each floor's by themselves: a selector knows no "or". They are no part of the
// other configuration: whoever injects the CA owns a field of every webhook, and one
// that goes with the values would leave a rest that is not valid.
func FloorConfigurations(a platform.Admission, e Endpoint, s Scope) []*admissionregistrationv1.ValidatingWebhookConfiguration {
	var out []*admissionregistrationv1.ValidatingWebhookConfiguration
	for i, floor := range s.Enforced {
		c := validatingConfiguration(ConfigurationOf(a) + "-by-floor-" + strconv.Itoa(i))
		in := s.besides(s.Enforced[:i])
		in.MatchLabels = floor.MatchLabels
		in.MatchExpressions = append(in.MatchExpressions, floor.MatchExpressions...)
		c.Webhooks = s.validating(e, on(a, s.closed(in)...))
		out = append(out, c)
	}
	return out
}

// namespaces are those in scope.
func (s Scope) namespaces() *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	if len(s.Only) > 0 {
		named(selector, metav1.LabelSelectorOpIn, s.Only)
	}
	named(selector, metav1.LabelSelectorOpNotIn, append([]string{metav1.NamespaceSystem}, s.Exempt...))
	return selector
}

// enforced are the namespaces in scope that say enforce, by their label or by the
// default.
func (s Scope) enforced() *metav1.LabelSelector {
	selector := s.namespaces()
	if s.EnforcedByDefault {
		says(selector, metav1.LabelSelectorOpNotIn, settings.Audit)
	} else {
		selector.MatchLabels = enforcing().MatchLabels
	}
	return selector
}

// besides are the other namespaces in scope, without those that these floors select,
// as far as one selector can tell.
func (s Scope) besides(floors []metav1.LabelSelector) *metav1.LabelSelector {
	selector := s.namespaces()
	if s.EnforcedByDefault {
		says(selector, metav1.LabelSelectorOpIn, settings.Audit)
	} else {
		says(selector, metav1.LabelSelectorOpNotIn, settings.Enforce)
	}
	for _, floor := range floors {
		selector.MatchExpressions = append(selector.MatchExpressions, outside(floor)...)
	}
	return selector
}

var opposite = map[metav1.LabelSelectorOperator]metav1.LabelSelectorOperator{
	metav1.LabelSelectorOpIn: metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpNotIn: metav1.LabelSelectorOpIn,
	metav1.LabelSelectorOpExists: metav1.LabelSelectorOpDoesNotExist, metav1.LabelSelectorOpDoesNotExist: metav1.LabelSelectorOpExists,
}

// outside selects what a floor does not select; nothing to add where the floor has
// several requirements: the opposite of "a and b" is an "or".
func outside(floor metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	requirements := slices.Clone(floor.MatchExpressions)
	for key, value := range floor.MatchLabels {
		requirements = append(requirements, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
	}
	switch len(requirements) {
	case 0:
		// Every namespace has this label.
		return []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpDoesNotExist}}
	case 1:
		requirements[0].Operator = opposite[requirements[0].Operator]
		return requirements
	}
	return nil
}

// namespaces are those that the hook is for.
func (h Hook) namespaces(scope *metav1.LabelSelector) *metav1.LabelSelector {
	narrow := scope.DeepCopy()
	if h.in != nil {
		narrow = h.in.DeepCopy()
	}
	if len(h.only) > 0 {
		named(narrow, metav1.LabelSelectorOpIn, h.only)
	}
	if len(h.not) > 0 {
		named(narrow, metav1.LabelSelectorOpNotIn, h.not)
	}
	return narrow
}

func says(selector *metav1.LabelSelector, op metav1.LabelSelectorOperator, mode settings.Mode) {
	selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: settings.EnforcementKey, Operator: op, Values: []string{string(mode)},
	})
}

func named(selector *metav1.LabelSelector, op metav1.LabelSelectorOperator, names []string) {
	sorted := slices.Sorted(slices.Values(names))
	selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: op, Values: slices.Compact(sorted),
	})
}
