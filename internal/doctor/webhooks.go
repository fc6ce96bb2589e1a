package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/webhooks"
)

const reinstall = "restore it as the release has it: helm upgrade, or freshbind webhook-config | kubectl apply -f -"

// hook is what a mutating and a validating webhook have in common.
type hook struct {
	name       string
	config     admissionregistrationv1.WebhookClientConfig
	rules      []admissionregistrationv1.RuleWithOperations
	conditions []admissionregistrationv1.MatchCondition
	namespaces *metav1.LabelSelector
	objects    *metav1.LabelSelector
	policy     admissionregistrationv1.FailurePolicyType
}

// kind is the hook's name without what tells variants for other namespaces apart.
// What audits is of another kind: nothing is enforced by it.
func (h hook) kind() string {
	return strings.TrimPrefix(strings.TrimPrefix(h.name, webhooks.OpenPrefix), webhooks.PoolPrefix)
}

func (h hook) audits() bool { return strings.HasPrefix(h.name, webhooks.AuditPrefix) }

var judging = []string{"bind.freshbind.dev", "coldstart.freshbind.dev"}

func mutatingHooks(c *admissionregistrationv1.MutatingWebhookConfiguration) []hook {
	var out []hook
	for _, w := range c.Webhooks {
		out = append(out, hook{w.Name, w.ClientConfig, w.Rules, w.MatchConditions, w.NamespaceSelector, w.ObjectSelector, ptr.Deref(w.FailurePolicy, "")})
	}
	return out
}

func validatingHooks(c *admissionregistrationv1.ValidatingWebhookConfiguration) []hook {
	var out []hook
	for _, w := range c.Webhooks {
		out = append(out, hook{w.Name, w.ClientConfig, w.Rules, w.MatchConditions, w.NamespaceSelector, w.ObjectSelector, ptr.Deref(w.FailurePolicy, "")})
	}
	return out
}

// installed returns the hooks that are stored; missing configurations are named.
func (d *Doctor) installed(ctx context.Context) (hooks []hook, missing []string, err error) {
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	err = d.Client.Get(ctx, client.ObjectKeyFromObject(d.Mutating), &mutating)
	switch {
	case apierrors.IsNotFound(err):
		missing = append(missing, "MutatingWebhookConfiguration "+d.Mutating.Name)
	case err != nil:
		return nil, nil, fmt.Errorf("reading the mutating webhooks: %w", err)
	}
	hooks = mutatingHooks(&mutating)
	for _, c := range append([]*admissionregistrationv1.ValidatingWebhookConfiguration{d.Validating}, d.Floors...) {
		var validating admissionregistrationv1.ValidatingWebhookConfiguration
		err = d.Client.Get(ctx, client.ObjectKeyFromObject(c), &validating)
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, "ValidatingWebhookConfiguration "+c.Name)
		case err != nil:
			return nil, nil, fmt.Errorf("reading the validating webhooks: %w", err)
		}
		hooks = append(hooks, validatingHooks(&validating)...)
	}
	return hooks, missing, nil
}

func (d *Doctor) webhooks(ctx context.Context) ([]Finding, error) {
	hooks, missing, err := d.installed(ctx)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, name := range missing {
		out = append(out, failed("install Freshbind: helm install freshbind", "%s does not exist: nothing is judged", name))
	}
	if len(missing) > 0 {
		return out, nil
	}
	var namespaces corev1.NamespaceList
	if err := d.Client.List(ctx, &namespaces); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	for _, want := range append(mutatingHooks(d.Mutating), validatingHooks(d.Validating)...) {
		have := slices.DeleteFunc(slices.Clone(hooks), func(h hook) bool { return h.kind() != want.name })
		if len(have) == 0 {
			out = append(out, failed(reinstall, "webhook %s is missing", want.name))
			continue
		}
		for _, h := range have {
			out = append(out, differences(h, want)...)
		}
		if slices.Contains(judging, want.name) {
			out = append(out, d.uncovered(have, namespaces.Items)...)
		}
	}
	if len(out) == 0 {
		out = ok("%d webhooks are installed, with the rules, conditions and selectors of this version", len(hooks))
	}
	return out, nil
}

func differences(have, want hook) []Finding {
	var out []Finding
	if !apiequality.Semantic.DeepEqual(have.rules, want.rules) {
		out = append(out, failed(reinstall, "webhook %s has other rules than this version installs", have.name))
	}
	if !apiequality.Semantic.DeepEqual(fixed(have.conditions), fixed(want.conditions)) {
		out = append(out, failed(reinstall, "webhook %s has other matchConditions than this version installs", have.name))
	}
	if have.objects != nil && (len(have.objects.MatchLabels) > 0 || len(have.objects.MatchExpressions) > 0) {
		out = append(out, failed(reinstall, "webhook %s has an objectSelector: whoever may label a sandbox gets around it", have.name))
	}
	open := strings.HasSuffix(pathOf(have.config), "/open")
	if slices.Contains(judging, have.kind()) && open != (have.policy == admissionregistrationv1.Ignore) {
		out = append(out, failed(reinstall, "webhook %s has failurePolicy %s and path %s: a path that ends in /open is for Ignore, any other one for Fail",
			have.name, have.policy, pathOf(have.config)))
	}
	if have.audits() && have.policy != admissionregistrationv1.Ignore {
		out = append(out, failed(reinstall, "webhook %s has failurePolicy %s: where nobody says enforce, claims wait while Freshbind is down",
			have.name, have.policy))
	}
	return out
}

// fixed are the conditions that no installation chooses.
func fixed(conditions []admissionregistrationv1.MatchCondition) []admissionregistrationv1.MatchCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c admissionregistrationv1.MatchCondition) bool {
		return c.Name == byAPoolController || c.Name == "not-born-"+byAPoolController || c.Name == "not-freshbind" ||
			c.Name == webhooks.NoPoolCondition
	})
}

// uncovered names the namespaces that say enforce, and in which nobody asks.
func (d *Doctor) uncovered(variants []hook, namespaces []corev1.Namespace) []Finding {
	var out []string
	for _, ns := range namespaces {
		if !d.guards(ns) {
			continue
		}
		covered := slices.ContainsFunc(variants, func(h hook) bool {
			selector, err := metav1.LabelSelectorAsSelector(h.namespaces)
			return err == nil && (h.namespaces == nil || selector.Matches(labels.Set(ns.Labels)))
		})
		if !covered {
			out = append(out, ns.Name)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return []Finding{failed("take them into the webhook's namespaceSelector, or take the label off: nothing is enforced there",
		"webhook %s leaves out namespaces that enforce: %s", variants[0].kind(), strings.Join(out, ", "))}
}

func pathOf(c admissionregistrationv1.WebhookClientConfig) string {
	if c.Service != nil {
		return ptr.Deref(c.Service.Path, "")
	}
	_, rest, _ := strings.Cut(ptr.Deref(c.URL, ""), "://")
	_, path, _ := strings.Cut(rest, "/")
	return "/" + path
}
