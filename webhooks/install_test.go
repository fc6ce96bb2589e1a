package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

func TestConfigurations(t *testing.T) {
	mutating, validating := Configurations(agentsandbox.Admission(), Endpoint{URL: "https://h:1", CABundle: []byte("ca")},
		Scope{Exempt: []string{"freshbind-system", "kube-system"}})
	got := map[string]admissionregistrationv1.FailurePolicyType{}
	for _, w := range mutating.Webhooks {
		got[w.Name] = *w.FailurePolicy
		check(t, w.Name, w.ClientConfig, w.MatchConditions, w.SideEffects, w.NamespaceSelector.MatchExpressions[0].Values)
	}
	for _, w := range validating.Webhooks {
		got[w.Name] = *w.FailurePolicy
		check(t, w.Name, w.ClientConfig, w.MatchConditions, w.SideEffects, w.NamespaceSelector.MatchExpressions[0].Values)
	}
	want := map[string]admissionregistrationv1.FailurePolicyType{
		"bind.freshbind.dev":                    admissionregistrationv1.Fail,
		"bind-pod.freshbind.dev":                admissionregistrationv1.Fail,
		"coldstart.freshbind.dev":               admissionregistrationv1.Fail,
		"foreigncontroller.freshbind.dev":       admissionregistrationv1.Fail,
		"audit-bind.freshbind.dev":              admissionregistrationv1.Ignore,
		"audit-bind-pod.freshbind.dev":          admissionregistrationv1.Ignore,
		"audit-coldstart.freshbind.dev":         admissionregistrationv1.Ignore,
		"audit-foreigncontroller.freshbind.dev": admissionregistrationv1.Ignore,
		"birth.freshbind.dev":                   admissionregistrationv1.Ignore,
		"birth-pod.freshbind.dev":               admissionregistrationv1.Ignore,
		"protect.freshbind.dev":                 admissionregistrationv1.Ignore,
		"protect-pod.freshbind.dev":             admissionregistrationv1.Ignore,
		"advise.freshbind.dev":                  admissionregistrationv1.Ignore,
		"stamp.freshbind.dev":                   admissionregistrationv1.Ignore,
		"stamp-birth.freshbind.dev":             admissionregistrationv1.Ignore,
		"stamp-pod.freshbind.dev":               admissionregistrationv1.Ignore,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failure policies (-want,+got):\n%s", diff)
	}
}

// A webhook after Freshbind's may change a Sandbox that Freshbind repaired, or take its
// time while the template is edited. What it changed, Freshbind repairs again.
func TestMutatingWebhooksAreCalledAgainAfterOthers(t *testing.T) {
	mutating, _ := Configurations(agentsandbox.Admission(), Endpoint{URL: "https://h:1"}, Scope{Restamp: true, Self: "us"})
	got, want := map[string]admissionregistrationv1.ReinvocationPolicyType{}, map[string]admissionregistrationv1.ReinvocationPolicyType{}
	for _, w := range mutating.Webhooks {
		got[w.Name] = ptr.Deref(w.ReinvocationPolicy, "")
	}
	for _, name := range []string{StampHook.Name, StampBirthHook.Name, StampPodHook.Name, RestampName} {
		want[name] = admissionregistrationv1.IfNeededReinvocationPolicy
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reinvocation policies (-want,+got):\n%s", diff)
	}
}

func check(t *testing.T, name string, cc admissionregistrationv1.WebhookClientConfig,
	conditions []admissionregistrationv1.MatchCondition, effects *admissionregistrationv1.SideEffectClass, exempt []string,
) {
	t.Helper()
	if len(conditions) == 0 {
		t.Errorf("%s: every write costs a call", name)
	}
	if *effects != admissionregistrationv1.SideEffectClassNone {
		t.Errorf("%s: dry runs are refused", name)
	}
	if cc.URL == nil || string(cc.CABundle) != "ca" {
		t.Errorf("%s: client config is %v", name, cc)
	}
	if diff := cmp.Diff([]string{"freshbind-system", "kube-system"}, exempt); diff != "" {
		t.Errorf("%s: exempt namespaces (-want,+got):\n%s", name, diff)
	}
}

// A delete that names a UID was meant for this very sandbox, and whoever is not
// a pool's controller may delete what he likes.
func TestProtectIsAskedAboutDeletesByPoolControllersWithoutAUID(t *testing.T) {
	cases := map[string]struct {
		scope Scope
		by    string
	}{
		"agent-sandbox's own": {Scope{}, `request.userInfo.username in ["` + agentsandbox.ControllerUser + `"]`},
		"as configured":       {Scope{PoolControllers: []string{"a", `b"c`}}, `request.userInfo.username in ["a", "b\"c"]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, validating := Configurations(agentsandbox.Admission(), Endpoint{URL: "https://h:1"}, tc.scope)
			want := map[string]map[string]string{
				ProtectHook.Name: {"of-a-claim": `oldObject.metadata.?ownerReferences.orValue([]).exists(o, ` +
					`o.kind == 'SandboxClaim' && o.apiVersion.startsWith('extensions.agents.x-k8s.io/'))`},
				ProtectPodHook.Name: {"a-bare-pod-that-left-its-pool": `oldObject.metadata.?generateName.orValue('') != '' && ` +
					`!oldObject.metadata.?ownerReferences.orValue([]).exists(o, ` +
					`o.kind == 'SandboxWarmPool' && o.apiVersion.startsWith('extensions.agents.x-k8s.io/') || ` +
					`o.?controller.orValue(false) && !(o.kind == 'Sandbox' && o.apiVersion.startsWith('agents.x-k8s.io/')))`},
			}
			for _, conditions := range want {
				conditions["by-a-pool-controller"] = tc.by
				conditions["without-a-uid"] = `!request.?options.?preconditions.?uid.hasValue()`
			}
			got := map[string]map[string]string{}
			for _, w := range validating.Webhooks {
				if want[w.Name] == nil {
					continue
				}
				got[w.Name] = map[string]string{}
				for _, c := range w.MatchConditions {
					got[w.Name][c.Name] = c.Expression
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("conditions (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestEndpointByService(t *testing.T) {
	_, validating := Configurations(agentsandbox.Admission(), Endpoint{ServiceNamespace: "ns", ServiceName: "svc", ServicePort: 8443}, Scope{})
	cc := validating.Webhooks[0].ClientConfig
	if cc.URL != nil || cc.Service == nil || *cc.Service.Path != "/bind" || *cc.Service.Port != 8443 {
		t.Errorf("client config is %v", cc)
	}
}

// Go's multiplexer answers //bind with a redirect, and the API server follows none.
func TestEndpointByURL(t *testing.T) {
	cases := map[string]struct{ url, want string }{
		"a host":               {"https://h:1", "https://h:1/bind"},
		"a slash at the end":   {"https://h:1/", "https://h:1/bind"},
		"a path":               {"https://h:1/guard", "https://h:1/guard/bind"},
		"a path and its slash": {"https://h:1/guard/", "https://h:1/guard/bind"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, validating := Configurations(agentsandbox.Admission(), Endpoint{URL: tc.url}, Scope{})
			if diff := cmp.Diff(&tc.want, validating.Webhooks[0].ClientConfig.URL); diff != "" {
				t.Errorf("URL (-want,+got)\n%s", diff)
			}
		})
	}
}

func TestEndpointValidate(t *testing.T) {
	cases := map[string]struct {
		endpoint Endpoint
		wantErr  bool
	}{
		"url":     {Endpoint{URL: "https://h"}, false},
		"service": {Endpoint{ServiceName: "svc"}, false},
		"neither": {Endpoint{}, true},
		"both":    {Endpoint{URL: "https://h", ServiceName: "svc"}, true},

		"not encrypted":   {Endpoint{URL: "http://h:9443"}, true},
		"no host":         {Endpoint{URL: "https:///bind"}, true},
		"no URL":          {Endpoint{URL: "https://h:x"}, true},
		"with a user":     {Endpoint{URL: "https://u@h"}, true},
		"with a query":    {Endpoint{URL: "https://h?x=y"}, true},
		"with a fragment": {Endpoint{URL: "https://h#x"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.endpoint.Validate(); (err != nil) != tc.wantErr {
				t.Errorf("Validate() = %v, want error %t", err, tc.wantErr)
			}
		})
	}
}

func TestHandlersAnswerBeforeTheAPIServerGivesUp(t *testing.T) {
	for _, h := range []Hook{BindHook, BindPodHook, ColdStartHook, ForeignControllerHook, BirthHook, BirthPodHook, StampHook, StampBirthHook, StampPodHook, ProtectHook, ProtectPodHook, AdviseHook} {
		if h.HandlerTimeout() >= h.Timeout || h.HandlerTimeout() <= 0 {
			t.Errorf("%s: handler may take %s of %s", h.Name, h.HandlerTimeout(), h.Timeout)
		}
	}
}

func TestWhatAPlatformHasNoUseForIsNotInstalled(t *testing.T) {
	a := agentsandbox.Admission()
	delete(a.Requests, platform.NewPods)
	mutating, _ := Configurations(a, Endpoint{URL: "https://h:1"}, Scope{Restamp: true, Self: "us"})
	var names []string
	for _, w := range mutating.Webhooks {
		names = append(names, w.Name)
	}
	if diff := cmp.Diff([]string{StampHook.Name, StampBirthHook.Name}, names); diff != "" {
		t.Errorf("webhooks (-want,+got):\n%s", diff)
	}
	if p := NewPolicies(a, Scope{}); len(p.Mutating) > 0 || len(p.MutatingBinding) > 0 {
		t.Errorf("stamps of Pods are put back, and there are none: %v", p.Mutating)
	}
}

// Changed stamps of Pods are put back once, whichever platform's they are.
func TestStampsArePutBackOnce(t *testing.T) {
	a := agentsandbox.Admission()
	a.Suffix = "-of-another"
	mutating, _ := Configurations(a, Endpoint{URL: "https://h:1"}, Scope{Restamp: true, Self: "us"})
	var names []string
	for _, w := range mutating.Webhooks {
		names = append(names, w.Name)
	}
	if diff := cmp.Diff([]string{StampHook.Name, StampBirthHook.Name, StampPodHook.Name}, names); diff != "" {
		t.Errorf("webhooks (-want,+got):\n%s", diff)
	}
	if p := NewPolicies(a, Scope{}); len(p.Mutating) > 0 || len(p.MutatingBinding) > 0 {
		t.Errorf("stamps of Pods are put back twice: %v", p.Mutating)
	}
}
