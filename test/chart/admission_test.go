package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/webhooks"
)

// Tests elsewhere run with what webhooks.Configurations returns: it has to be
// what the chart installs.
func TestAdmissionConfigurationIsTheCodes(t *testing.T) {
	const self = "system:serviceaccount:" + namespace + ":"
	endpoint := func(name string, port int32, ca string) webhooks.Endpoint {
		e := webhooks.Endpoint{ServiceNamespace: namespace, ServiceName: name, ServicePort: port}
		if ca != "" {
			e.CABundle = []byte(ca)
		}
		return e
	}
	own := []string{namespace}
	cases := map[string]struct {
		args     []string
		endpoint webhooks.Endpoint
		scope    webhooks.Scope
		// kruise makes the members of OpenKruise Agents' pools; "" without that platform.
		kruise string
	}{
		"by default": {
			args: []string{certManager, mutating}, endpoint: endpoint("freshbind", 443, ""),
			scope: webhooks.Scope{Exempt: own, Self: self + "freshbind"},
		},
		"with OpenKruise Agents": {
			args: append(set("config.platforms.kruise=true", "webhooks.kruiseControllerUsers={k}", "webhooks.poolControllerUsers={me}", "webhooks.openNamespaces={lab}",
				"config.floors[0].namespaceSelector.matchLabels.tier=prod", "config.floors[0].minimumEnforcement=enforce"), certManager),
			endpoint: endpoint("freshbind", 443, ""), kruise: "k",
			scope: webhooks.Scope{
				Exempt: own, Self: self + "freshbind", Restamp: true, PoolControllers: []string{"me"}, Open: []string{"lab"},
				Enforced: []metav1.LabelSelector{{MatchLabels: map[string]string{"tier": "prod"}}},
			},
		},
		"before Kubernetes 1.36": {
			args: []string{certManager}, endpoint: endpoint("freshbind", 443, ""),
			scope: webhooks.Scope{Exempt: own, Self: self + "freshbind", Restamp: true},
		},
		"other names": {
			args:     append(set("fullnameOverride=fb", "serviceAccount.name=me", "service.port=8443", "webhooks.mutatingPolicies=Never"), append(ownSecret, mutating)...),
			endpoint: endpoint("fb", 8443, "PEM"), scope: webhooks.Scope{Exempt: own, Self: self + "me", Restamp: true},
		},
		"some namespaces": {
			args: append(set("namespaces={b,a}", "webhooks.exemptNamespaces={z,kube-system}"), certManager, mutating), endpoint: endpoint("freshbind", 443, ""),
			scope: webhooks.Scope{Exempt: []string{"z", namespace}, Only: []string{"a", "b"}, Self: self + "freshbind"},
		},
		"cold starts open": {
			args:     append(set("webhooks.failurePolicies.coldStart=Ignore", "webhooks.openNamespaces={lab,dev}"), certManager, mutating),
			endpoint: endpoint("freshbind", 443, ""),
			scope:    webhooks.Scope{Exempt: own, Self: self + "freshbind", ColdStart: admissionregistrationv1.Ignore, Open: []string{"dev", "lab"}},
		},
		"binds open": {
			args:     append(set("webhooks.failurePolicies.bind=Ignore", "webhooks.openNamespaces={lab}", "webhooks.poolControllerUsers={me,you}", "webhooks.mutatingPolicies=Always"), certManager),
			endpoint: endpoint("freshbind", 443, ""),
			scope:    webhooks.Scope{Exempt: own, Self: self + "freshbind", Bind: admissionregistrationv1.Ignore, Open: []string{"lab"}, PoolControllers: []string{"me", "you"}},
		},
		"enforced by default and by floors": {
			args: append(set("config.defaults.enforcement=enforce",
				"config.floors[0].namespaceSelector.matchLabels.tier=prod", "config.floors[0].minimumStrategy=Recreate",
				"config.floors[1].namespaceSelector.matchLabels.tier=prod", "config.floors[1].minimumEnforcement=enforce",
				"config.floors[2].namespaceSelector.matchExpressions[0].key=team", "config.floors[2].namespaceSelector.matchExpressions[0].operator=Exists",
				"config.floors[2].minimumEnforcement=enforce", "namespaces={b}"), certManager, mutating),
			endpoint: endpoint("freshbind", 443, ""),
			scope: webhooks.Scope{Exempt: own, Self: self + "freshbind", Only: []string{"b"}, EnforcedByDefault: true, Enforced: []metav1.LabelSelector{
				{MatchLabels: map[string]string{"tier": "prod"}},
				{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpExists}}},
			}},
		},
		"enforced by floors of several requirements, and everywhere": {
			args: append(set("config.floors[0].namespaceSelector.matchLabels.tier=prod", "config.floors[0].namespaceSelector.matchLabels.zone=a",
				"config.floors[0].minimumEnforcement=enforce", "webhooks.openNamespaces={lab}",
				"config.floors[1].namespaceSelector.matchExpressions[0].key=team", "config.floors[1].namespaceSelector.matchExpressions[0].operator=NotIn",
				"config.floors[1].namespaceSelector.matchExpressions[0].values={x,y}", "config.floors[1].minimumEnforcement=enforce",
				"config.floors[2].minimumEnforcement=enforce"), certManager, mutating, "--set-json=config.floors[2].namespaceSelector={}"),
			endpoint: endpoint("freshbind", 443, ""),
			scope: webhooks.Scope{Exempt: own, Self: self + "freshbind", Open: []string{"lab"}, Enforced: []metav1.LabelSelector{
				{MatchLabels: map[string]string{"tier": "prod", "zone": "a"}},
				{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"x", "y"}}}},
				{},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]any{}
			for _, o := range render(t, tc.args...) {
				if o.GroupVersionKind().Group == admissionregistrationv1.GroupName {
					got[o.GetKind()+" "+o.GetName()] = meaning(o)
				}
			}
			objects := admissionObjects(agentsandbox.Admission(), tc.endpoint, tc.scope)
			if tc.kruise != "" {
				scope := tc.scope
				scope.PoolControllers = []string{tc.kruise}
				objects = append(objects, admissionObjects(kruise.Admission(), tc.endpoint, scope)...)
			}
			want := map[string]any{}
			for _, o := range objects {
				object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
				if err != nil {
					t.Fatal(err)
				}
				u := &unstructured.Unstructured{Object: object}
				want[u.GetKind()+" "+u.GetName()] = meaning(u)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("admission configuration (-want,+got):\n%s", diff)
			}
		})
	}
}

// admissionObjects are what the code installs for a platform.
func admissionObjects(a platform.Admission, e webhooks.Endpoint, scope webhooks.Scope) []client.Object {
	mutating, validating := webhooks.Configurations(a, e, scope)
	policies := webhooks.NewPolicies(a, scope)
	if scope.Restamp {
		policies = policies.WithoutMutating()
	}
	objects := slices.Concat([]client.Object{mutating, validating}, policies.Objects(), webhooks.NewOwnPolicies(a, scope.Self, kruise.Admission()).Objects())
	for _, c := range webhooks.FloorConfigurations(a, e, scope) {
		objects = append(objects, c)
	}
	return objects
}

// meaning is what an object says, without what the chart adds to all of them.
func meaning(o *unstructured.Unstructured) map[string]any {
	content := o.DeepCopy().Object
	delete(content, "metadata")
	delete(content, "status")
	if hooks, ok := content["webhooks"].([]any); ok {
		content["webhooks"] = slices.DeleteFunc(hooks, nowhere)
	}
	return normal(content).(map[string]any)
}

// nowhere: the webhook is there for no namespace.
func nowhere(hook any) bool {
	expressions, _, _ := unstructured.NestedSlice(hook.(map[string]any), "namespaceSelector", "matchExpressions")
	if strings.HasPrefix(hook.(map[string]any)["name"].(string), webhooks.AuditPrefix) {
		return false // Left out by a floor for all, which is to be compared.
	}
	return slices.ContainsFunc(expressions, func(e any) bool {
		return e.(map[string]any)["operator"] == "DoesNotExist" && e.(map[string]any)["key"] == corev1.LabelMetadataName
	})
}

// Who injects the CA owns a field of every webhook: one that came or went with
// the values would make an upgrade fail.
func TestTheWebhooksAreTheSameForAllValues(t *testing.T) {
	var want []string
	for name, args := range map[string][]string{
		"defaults":             nil,
		"mutating policies":    {mutating},
		"open namespaces":      set("webhooks.openNamespaces={lab}"),
		"open everywhere":      set("webhooks.failurePolicies.bind=Ignore", "webhooks.failurePolicies.coldStart=Ignore", "webhooks.openNamespaces={lab}"),
		"mutating policies on": set("webhooks.mutatingPolicies=Always"),
	} {
		var got []string
		for _, o := range render(t, append(args, certManager)...) {
			hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
			for _, h := range hooks {
				got = append(got, h.(map[string]any)["name"].(string))
			}
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-others,+these):\n%s", name, diff)
		}
	}
}

// normal makes numbers of YAML and of Go equal.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = normal(v[k])
		}
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case float64:
		return int64(v)
	}
	return v
}
