package webhooks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
)

// A handler knows by its path what the failurePolicy is; one for audit need not.
func TestFailurePoliciesOfBindsAndColdStarts(t *testing.T) {
	type judged struct{ Path, Policy string }
	cases := map[string]struct {
		scope Scope
		want  map[string]judged
	}{
		"by default": {Scope{}, map[string]judged{
			"bind.freshbind.dev":                    {"/bind", "Fail"},
			"bind-pod.freshbind.dev":                {"/bind-pod", "Fail"},
			"coldstart.freshbind.dev":               {"/coldstart", "Fail"},
			"foreigncontroller.freshbind.dev":       {"/foreigncontroller", "Fail"},
			"audit-bind.freshbind.dev":              {"/bind", "Ignore"},
			"audit-bind-pod.freshbind.dev":          {"/bind-pod", "Ignore"},
			"audit-coldstart.freshbind.dev":         {"/coldstart", "Ignore"},
			"audit-foreigncontroller.freshbind.dev": {"/foreigncontroller", "Ignore"},
		}},
		"binds open": {Scope{Bind: admissionregistrationv1.Ignore}, map[string]judged{
			"bind.freshbind.dev":                    {"/bind/open", "Ignore"},
			"bind-pod.freshbind.dev":                {"/bind-pod/open", "Ignore"},
			"coldstart.freshbind.dev":               {"/coldstart", "Fail"},
			"foreigncontroller.freshbind.dev":       {"/foreigncontroller/open", "Ignore"},
			"audit-bind.freshbind.dev":              {"/bind/open", "Ignore"},
			"audit-bind-pod.freshbind.dev":          {"/bind-pod/open", "Ignore"},
			"audit-coldstart.freshbind.dev":         {"/coldstart", "Ignore"},
			"audit-foreigncontroller.freshbind.dev": {"/foreigncontroller/open", "Ignore"},
		}},
		"open in a namespace": {Scope{Open: []string{"lab"}, ColdStart: admissionregistrationv1.Ignore}, map[string]judged{
			"bind.freshbind.dev":                    {"/bind", "Fail"},
			"bind-pod.freshbind.dev":                {"/bind-pod", "Fail"},
			"coldstart.freshbind.dev":               {"/coldstart/open", "Ignore"},
			"foreigncontroller.freshbind.dev":       {"/foreigncontroller", "Fail"},
			"audit-bind.freshbind.dev":              {"/bind", "Ignore"},
			"audit-bind-pod.freshbind.dev":          {"/bind-pod", "Ignore"},
			"audit-coldstart.freshbind.dev":         {"/coldstart/open", "Ignore"},
			"audit-foreigncontroller.freshbind.dev": {"/foreigncontroller", "Ignore"},
			"open-bind.freshbind.dev":               {"/bind/open", "Ignore"},
			"open-bind-pod.freshbind.dev":           {"/bind-pod/open", "Ignore"},
			"open-foreigncontroller.freshbind.dev":  {"/foreigncontroller/open", "Ignore"},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, validating := Configurations(agentsandbox.Admission(), service, tc.scope)
			got := map[string]judged{}
			for _, w := range validating.Webhooks[:len(tc.want)] {
				got[w.Name] = judged{Path: *w.ClientConfig.Service.Path, Policy: string(*w.FailurePolicy)}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("hooks (-want,+got):\n%s", diff)
			}
		})
	}
}

var service = Endpoint{ServiceName: "s", ServiceNamespace: "n", ServicePort: 443}

// However you enforce, a bind is asked about once, and waits for the answer there and
// nowhere else.
func TestABindWaitsWhereEnforceIsSaid(t *testing.T) {
	const label = settings.EnforcementKey
	floor := func(requirements ...string) metav1.LabelSelector {
		var s metav1.LabelSelector
		for _, text := range requirements {
			one, err := metav1.ParseToLabelSelector(text)
			if err != nil {
				t.Fatal(err)
			}
			s.MatchExpressions = append(s.MatchExpressions, one.MatchExpressions...)
			for k, v := range one.MatchLabels {
				metav1.AddLabelToSelector(&s, k, v)
			}
		}
		return s
	}
	floors := func(all ...metav1.LabelSelector) []metav1.LabelSelector { return all }
	prod, team := floor("tier=prod"), floor("team")
	const closed, audited = "freshbind/bind.freshbind.dev Fail", "freshbind/audit-bind.freshbind.dev Ignore"
	cases := map[string]struct {
		scope     Scope
		pools     []string
		namespace map[string]string
		want      []string
	}{
		"a namespace that says nothing":      {Scope{}, nil, nil, []string{audited}},
		"its label says enforce":             {Scope{}, nil, map[string]string{label: "enforce"}, []string{closed}},
		"its label says audit":               {Scope{}, nil, map[string]string{label: "audit"}, []string{audited}},
		"its label cannot be understood":     {Scope{}, nil, map[string]string{label: "Enforce"}, []string{audited}},
		"by default":                         {Scope{EnforcedByDefault: true}, nil, nil, []string{closed}},
		"by default, not understood":         {Scope{EnforcedByDefault: true}, nil, map[string]string{label: "Audit"}, []string{closed}},
		"not though that is the default":     {Scope{EnforcedByDefault: true}, nil, map[string]string{label: "audit"}, []string{audited}},
		"by a floor":                         {Scope{Enforced: floors(prod)}, nil, map[string]string{"tier": "prod"}, []string{"freshbind-by-floor-0/bind.freshbind.dev Fail"}},
		"by a floor, whatever it says":       {Scope{Enforced: floors(prod), EnforcedByDefault: true}, nil, map[string]string{"tier": "prod", label: "audit"}, []string{"freshbind-by-floor-0/bind.freshbind.dev Fail"}},
		"by a floor and its label":           {Scope{Enforced: floors(prod)}, nil, map[string]string{"tier": "prod", label: "enforce"}, []string{closed}},
		"outside of a floor":                 {Scope{Enforced: floors(prod)}, nil, map[string]string{"tier": "dev"}, []string{audited}},
		"by two floors":                      {Scope{Enforced: floors(prod, team)}, nil, map[string]string{"tier": "prod", "team": "a"}, []string{"freshbind-by-floor-0/bind.freshbind.dev Fail"}},
		"by the second floor":                {Scope{Enforced: floors(prod, team)}, nil, map[string]string{"team": "a"}, []string{"freshbind-by-floor-1/bind.freshbind.dev Fail"}},
		"by a floor for what is not":         {Scope{Enforced: floors(floor("tier notin (dev)"))}, nil, nil, []string{"freshbind-by-floor-0/bind.freshbind.dev Fail"}},
		"outside of a floor for what is not": {Scope{Enforced: floors(floor("tier notin (dev)"))}, nil, map[string]string{"tier": "dev"}, []string{audited}},
		"by a floor for what has no label":   {Scope{Enforced: floors(floor("!team"))}, nil, nil, []string{"freshbind-by-floor-0/bind.freshbind.dev Fail"}},
		"outside of that":                    {Scope{Enforced: floors(floor("!team"))}, nil, map[string]string{"team": "a"}, []string{audited}},
		"by a floor for all":                 {Scope{Enforced: floors(floor())}, nil, nil, []string{"freshbind-by-floor-0/bind.freshbind.dev Fail"}},
		// One selector cannot say what a floor of two requirements leaves out.
		"by a floor of two requirements":    {Scope{Enforced: floors(floor("tier=prod", "team"))}, nil, map[string]string{"tier": "prod", "team": "a"}, []string{audited, "freshbind-by-floor-0/bind.freshbind.dev Fail"}},
		"half of that":                      {Scope{Enforced: floors(floor("tier=prod", "team"))}, nil, map[string]string{"tier": "prod"}, []string{audited}},
		"by a pool":                         {Scope{}, []string{"here", "else"}, nil, []string{"freshbind/pool-bind.freshbind.dev Fail"}},
		"by a pool, and it says audit":      {Scope{EnforcedByDefault: true}, []string{"here"}, map[string]string{label: "audit"}, []string{"freshbind/pool-bind.freshbind.dev Fail"}},
		"by a pool and its label":           {Scope{}, []string{"here"}, map[string]string{label: "enforce"}, []string{closed}},
		"by a pool and a floor":             {Scope{Enforced: floors(prod)}, []string{"here"}, map[string]string{"tier": "prod"}, []string{"freshbind-by-floor-0/bind.freshbind.dev Fail"}},
		"by a pool elsewhere":               {Scope{}, []string{"else"}, nil, []string{audited}},
		"by a pool out of scope":            {Scope{Only: []string{"else"}}, []string{"here"}, map[string]string{label: "enforce"}, nil},
		"open":                              {Scope{Open: []string{"here"}}, []string{"here"}, map[string]string{label: "enforce"}, []string{"freshbind/open-bind.freshbind.dev Ignore"}},
		"open, and it says nothing":         {Scope{Open: []string{"here"}}, []string{"here"}, nil, []string{"freshbind/open-bind.freshbind.dev Ignore"}},
		"open, and by a floor":              {Scope{Open: []string{"here"}, Enforced: floors(prod)}, nil, map[string]string{"tier": "prod"}, []string{"freshbind/open-bind.freshbind.dev Ignore"}},
		"open elsewhere":                    {Scope{Open: []string{"lab"}}, nil, map[string]string{label: "enforce"}, []string{closed}},
		"open everywhere":                   {Scope{Bind: admissionregistrationv1.Ignore}, []string{"here"}, nil, []string{audited}},
		"open everywhere, its label":        {Scope{Bind: admissionregistrationv1.Ignore}, nil, map[string]string{label: "enforce"}, []string{"freshbind/bind.freshbind.dev Ignore"}},
		"by more pools than can be named":   {Scope{}, many(), nil, []string{"freshbind/pool-bind.freshbind.dev Fail"}},
		"exempt":                            {Scope{Exempt: []string{"here"}}, []string{"here"}, map[string]string{label: "enforce"}, nil},
		"for some namespaces, by its label": {Scope{Only: []string{"here"}}, nil, map[string]string{label: "enforce"}, []string{closed}},
		"for some namespaces, says nothing": {Scope{Only: []string{"here"}}, nil, nil, []string{audited}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, validating := Configurations(agentsandbox.Admission(), service, tc.scope)
			ClosePools(validating, tc.pools)
			var got []string
			for _, c := range append([]*admissionregistrationv1.ValidatingWebhookConfiguration{validating}, FloorConfigurations(agentsandbox.Admission(), service, tc.scope)...) {
				for _, w := range c.Webhooks {
					if strings.HasSuffix(w.Name, BindHook.Name) && asks(t, w, "here", tc.namespace) {
						got = append(got, c.Name+"/"+w.Name+" "+string(*w.FailurePolicy))
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("asked of a bind (-want,+got):\n%s", diff)
			}
		})
	}
}

// many are more namespaces than the configuration names.
func many() []string {
	out := make([]string, maxClosedByName+1)
	for i := range out {
		out[i] = "n" + strconv.Itoa(i)
	}
	return out
}

// asks: the API server asks the webhook about binds in the namespace, by its selector
// and by the condition that is there for namespaces.
func asks(t *testing.T, w admissionregistrationv1.ValidatingWebhook, namespace string, has map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(w.NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	all := labels.Set{corev1.LabelMetadataName: namespace}
	for k, v := range has {
		all[k] = v
	}
	for _, c := range w.MatchConditions {
		if c.Name == NoPoolCondition && (c.Expression == "false" || strings.Contains(c.Expression, strconv.Quote(namespace))) {
			return false
		}
	}
	return selector.Matches(all)
}

// What is closed once does not stay so, and what others wrote does.
func TestPoolsCloseAsTheySayNow(t *testing.T) {
	_, c := Configurations(agentsandbox.Admission(), service, Scope{})
	want := c.DeepCopy()
	ClosePools(c, []string{"b", "a", "b"})
	once := c.DeepCopy()
	ClosePools(c, []string{"a", "b"})
	if diff := cmp.Diff(once, c); diff != "" {
		t.Errorf("closed twice (-once,+twice):\n%s", diff)
	}
	i := slices.IndexFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return w.Name == "audit-coldstart.freshbind.dev"
	})
	expression := c.Webhooks[i].MatchConditions[len(c.Webhooks[i].MatchConditions)-1].Expression
	if diff := cmp.Diff(`!(request.namespace in ["a", "b"])`, expression); diff != "" {
		t.Errorf("condition (-want,+got):\n%s", diff)
	}
	if got := len(c.Webhooks) - len(want.Webhooks); got != len(Judged()) {
		t.Errorf("%d webhooks more, want %d", got, len(Judged()))
	}
	ClosePools(c, nil)
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("opened again (-want,+got):\n%s", diff)
	}
}

// As many namespaces as can be named are named; with one more all are closed.
func TestHowManyNamespacesAreClosedByName(t *testing.T) {
	names := make([]string, maxClosedByName+1)
	for i := range names {
		names[i] = fmt.Sprintf("ns-%04d", i)
	}
	for name, tc := range map[string]struct {
		namespaces []string
		named      bool
	}{
		"as many as may be": {names[:maxClosedByName], true},
		"one more":          {names, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := Configurations(agentsandbox.Admission(), service, Scope{})
			ClosePools(c, tc.namespaces)
			for _, h := range c.Webhooks {
				by, ofPools := strings.CutPrefix(h.Name, PoolPrefix)
				if ofPools && tc.named != strings.Contains(fmt.Sprint(h.NamespaceSelector), "ns-0999") {
					t.Errorf("%s selects %v", h.Name, h.NamespaceSelector)
				}
				audited, isAudit := strings.CutPrefix(h.Name, AuditPrefix)
				if !isAudit || !failsClosed(c.Webhooks, audited) {
					continue
				}
				last := h.MatchConditions[len(h.MatchConditions)-1]
				if last.Name != NoPoolCondition || tc.named == (last.Expression == "false") {
					t.Errorf("%s (for %q) has the condition %.60q", h.Name, by, last.Expression)
				}
			}
		})
	}
}

// What others stored may select all namespaces.
func TestAHookOfAllNamespacesIsClosedByName(t *testing.T) {
	_, c := Configurations(agentsandbox.Admission(), service, Scope{})
	for i := range c.Webhooks {
		c.Webhooks[i].NamespaceSelector = nil
	}
	ClosePools(c, []string{"a"})
	want := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{"a"}},
	}}
	for _, w := range c.Webhooks {
		if !strings.HasPrefix(w.Name, PoolPrefix) {
			continue
		}
		if diff := cmp.Diff(want, w.NamespaceSelector); diff != "" {
			t.Errorf("%s: namespaces (-want,+got):\n%s", w.Name, diff)
		}
	}
}

func TestUnlike(t *testing.T) {
	edit := func(name string, change func(h *admissionregistrationv1.ValidatingWebhook)) func(*admissionregistrationv1.ValidatingWebhookConfiguration) {
		return func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			for i := range c.Webhooks {
				if c.Webhooks[i].Name == name {
					change(&c.Webhooks[i])
				}
			}
		}
	}
	never := func(h *admissionregistrationv1.ValidatingWebhook) { h.MatchConditions[0].Expression = "false" }
	for name, tc := range map[string]struct {
		scope Scope
		pools []string
		edit  func(*admissionregistrationv1.ValidatingWebhookConfiguration)
		want  []string
	}{
		"as rendered":             {},
		"open":                    {scope: Scope{Bind: admissionregistrationv1.Ignore, Open: []string{"a"}}},
		"enforced by default":     {scope: Scope{EnforcedByDefault: true}},
		"where pools enforce":     {pools: []string{"a", "b"}},
		"a condition":             {edit: edit("coldstart.freshbind.dev", never), want: []string{"coldstart.freshbind.dev"}},
		"a condition of a pool's": {pools: []string{"a"}, edit: edit("pool-bind.freshbind.dev", never), want: []string{"pool-bind.freshbind.dev"}},
		"the variant's": {
			pools: []string{"a"}, edit: edit("audit-bind.freshbind.dev", never), want: []string{"bind.freshbind.dev", "pool-bind.freshbind.dev"},
		},
		"a CA": {
			edit: edit("coldstart.freshbind.dev", func(h *admissionregistrationv1.ValidatingWebhook) { h.ClientConfig.CABundle = []byte("x") }),
			want: []string{"coldstart.freshbind.dev"},
		},
		"rules": {
			edit: edit("bind.freshbind.dev", func(h *admissionregistrationv1.ValidatingWebhook) { h.Rules[0].Resources = []string{"widgets"} }),
			want: []string{"bind.freshbind.dev"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := Configurations(agentsandbox.Admission(), Endpoint{URL: "https://h"}, tc.scope)
			ClosePools(c, tc.pools)
			if tc.edit != nil {
				tc.edit(c)
			}
			if diff := cmp.Diff(tc.want, Unlike(c)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
