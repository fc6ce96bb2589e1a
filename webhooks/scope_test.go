package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// A handler knows by its path what the failurePolicy is.
func TestFailurePoliciesOfBindsAndColdStarts(t *testing.T) {
	type judged struct {
		Path, Policy string
		In, NotIn    []string
	}
	notIn := func(more ...string) []string { return append([]string{"kube-system"}, more...) }
	cases := map[string]struct {
		scope Scope
		want  map[string]judged
	}{
		"by default": {Scope{}, map[string]judged{
			"bind.freshbind.dev":              {"/bind", "Fail", nil, notIn()},
			"bind-pod.freshbind.dev":          {"/bind-pod", "Fail", nil, notIn()},
			"coldstart.freshbind.dev":         {"/coldstart", "Fail", nil, notIn()},
			"foreigncontroller.freshbind.dev": {"/foreigncontroller", "Fail", nil, notIn()},
		}},
		"binds open": {Scope{Bind: admissionregistrationv1.Ignore}, map[string]judged{
			"bind.freshbind.dev":              {"/bind/open", "Ignore", nil, notIn()},
			"bind-pod.freshbind.dev":          {"/bind-pod/open", "Ignore", nil, notIn()},
			"coldstart.freshbind.dev":         {"/coldstart", "Fail", nil, notIn()},
			"foreigncontroller.freshbind.dev": {"/foreigncontroller/open", "Ignore", nil, notIn()},
		}},
		"open in a namespace": {Scope{Open: []string{"lab"}, ColdStart: admissionregistrationv1.Ignore}, map[string]judged{
			"bind.freshbind.dev":                   {"/bind", "Fail", nil, notIn("lab")},
			"open-bind.freshbind.dev":              {"/bind/open", "Ignore", []string{"lab"}, notIn()},
			"bind-pod.freshbind.dev":               {"/bind-pod", "Fail", nil, notIn("lab")},
			"open-bind-pod.freshbind.dev":          {"/bind-pod/open", "Ignore", []string{"lab"}, notIn()},
			"coldstart.freshbind.dev":              {"/coldstart/open", "Ignore", nil, notIn()},
			"foreigncontroller.freshbind.dev":      {"/foreigncontroller", "Fail", nil, notIn("lab")},
			"open-foreigncontroller.freshbind.dev": {"/foreigncontroller/open", "Ignore", []string{"lab"}, notIn()},
		}},
		"for some namespaces": {Scope{Only: []string{"b", "a"}}, map[string]judged{
			"bind.freshbind.dev":              {"/bind", "Fail", []string{"a", "b"}, notIn()},
			"bind-pod.freshbind.dev":          {"/bind-pod", "Fail", []string{"a", "b"}, notIn()},
			"coldstart.freshbind.dev":         {"/coldstart", "Fail", []string{"a", "b"}, notIn()},
			"foreigncontroller.freshbind.dev": {"/foreigncontroller", "Fail", []string{"a", "b"}, notIn()},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, validating := Configurations(agentsandbox.Admission(), Endpoint{ServiceName: "s", ServiceNamespace: "n", ServicePort: 443}, tc.scope)
			got := map[string]judged{}
			for _, w := range validating.Webhooks[:len(tc.want)] {
				j := judged{Path: *w.ClientConfig.Service.Path, Policy: string(*w.FailurePolicy)}
				for _, e := range w.NamespaceSelector.MatchExpressions {
					if e.Operator == metav1.LabelSelectorOpIn {
						j.In = append(j.In, e.Values...)
					} else {
						j.NotIn = append(j.NotIn, e.Values...)
					}
				}
				got[w.Name] = j
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("hooks (-want,+got):\n%s", diff)
			}
		})
	}
}
