package webhooks

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// closed are the judged hooks, each with its failurePolicy.
func (s Scope) closed() []Hook {
	var hooks []Hook
	for _, h := range Judged() {
		if s.policyOf(h) == admissionregistrationv1.Ignore {
			h = h.Opened()
		} else {
			h.not = s.Open
		}
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
			h.Name, h.only = "open-"+h.Name, s.Open
			hooks = append(hooks, h)
		}
	}
	return hooks
}

func (s Scope) policyOf(h Hook) admissionregistrationv1.FailurePolicyType {
	if h.Name == ColdStartHook.Name {
		return s.ColdStart
	}
	return s.Bind
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

// namespaces narrows down the namespaces in scope.
func (h Hook) namespaces(scope *metav1.LabelSelector) *metav1.LabelSelector {
	narrow := scope.DeepCopy()
	if len(h.only) > 0 {
		named(narrow, metav1.LabelSelectorOpIn, h.only)
	}
	if len(h.not) > 0 {
		named(narrow, metav1.LabelSelectorOpNotIn, h.not)
	}
	return narrow
}

func named(selector *metav1.LabelSelector, op metav1.LabelSelectorOperator, names []string) {
	sorted := slices.Sorted(slices.Values(names))
	selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: op, Values: slices.Compact(sorted),
	})
}
