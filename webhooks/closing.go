package webhooks

import (
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// NoPoolCondition keeps a hook with AuditPrefix from being asked what one with
	// PoolPrefix is asked.
	NoPoolCondition = "where-no-pool-enforces"
	// maxClosedByName bounds the configuration, which has these names eight times.
	maxClosedByName = 1000
)

// ClosePools gives a configuration the hooks of the namespaces in which a pool says
// enforce, and takes them off the hooks with AuditPrefix. It adds to a list whose
// items have names, so that whoever applies the rest of the configuration leaves that
// alone. With more namespaces than can be named, all are closed.
func ClosePools(c *admissionregistrationv1.ValidatingWebhookConfiguration, namespaces []string) {
	namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	hooks := slices.DeleteFunc(slices.Clone(c.Webhooks), func(h admissionregistrationv1.ValidatingWebhook) bool {
		return strings.HasPrefix(h.Name, PoolPrefix)
	})
	var closed []admissionregistrationv1.ValidatingWebhook
	for i := range hooks {
		name, audited := strings.CutPrefix(hooks[i].Name, AuditPrefix)
		if !audited {
			continue
		}
		h := &hooks[i]
		h.MatchConditions = besidesPools(h.MatchConditions)
		if len(namespaces) == 0 || !failsClosed(hooks, name) {
			continue
		}
		closed = append(closed, closedByPools(*h.DeepCopy(), name, namespaces))
		h.MatchConditions = append(h.MatchConditions, admissionregistrationv1.MatchCondition{
			Name: NoPoolCondition, Expression: notIn(namespaces),
		})
	}
	c.Webhooks = slices.Concat(hooks, closed)
}

// failsClosed: the failurePolicy that was chosen for the hook is Fail.
func failsClosed(hooks []admissionregistrationv1.ValidatingWebhook, name string) bool {
	return slices.ContainsFunc(hooks, func(h admissionregistrationv1.ValidatingWebhook) bool {
		return h.Name == name && ptr.Deref(h.FailurePolicy, "") == admissionregistrationv1.Fail
	})
}

func closedByPools(h admissionregistrationv1.ValidatingWebhook, name string, namespaces []string) admissionregistrationv1.ValidatingWebhook {
	h.Name = PoolPrefix + name
	h.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
	if len(namespaces) <= maxClosedByName {
		if h.NamespaceSelector == nil {
			h.NamespaceSelector = &metav1.LabelSelector{}
		}
		named(h.NamespaceSelector, metav1.LabelSelectorOpIn, namespaces)
	}
	return h
}

func notIn(namespaces []string) string {
	if len(namespaces) > maxClosedByName {
		return "false"
	}
	quoted := make([]string, len(namespaces))
	for i, n := range namespaces {
		quoted[i] = strconv.Quote(n)
	}
	return "!(request.namespace in [" + strings.Join(quoted, ", ") + "])"
}

// Unlike names the hooks that differ from their variants with AuditPrefix in more
// than the namespaces and the failurePolicy. Both are rendered from one hook, so that
// what is seen to work of a variant holds for the other where they are alike.
func Unlike(c *admissionregistrationv1.ValidatingWebhookConfiguration) []string {
	var out []string
	for i := range c.Webhooks {
		name, audited := strings.CutPrefix(c.Webhooks[i].Name, AuditPrefix)
		if !audited {
			continue
		}
		variant := asked(c.Webhooks[i])
		for _, h := range c.Webhooks {
			if (h.Name == name || h.Name == PoolPrefix+name) && !apiequality.Semantic.DeepEqual(asked(h), variant) {
				out = append(out, h.Name)
			}
		}
	}
	return out
}

// asked is a hook without what its variants are told apart by.
func asked(h admissionregistrationv1.ValidatingWebhook) admissionregistrationv1.ValidatingWebhook {
	h.Name, h.FailurePolicy, h.NamespaceSelector = "", nil, nil
	h.MatchConditions = besidesPools(h.MatchConditions)
	return h
}

func besidesPools(conditions []admissionregistrationv1.MatchCondition) []admissionregistrationv1.MatchCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(m admissionregistrationv1.MatchCondition) bool { return m.Name == NoPoolCondition })
}
