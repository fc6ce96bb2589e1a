package chart

import (
	"strings"
	"testing"
)

// The notes say what to do next and how to get out, and warn of values that may
// hurt.
func TestNotes(t *testing.T) {
	cases := map[string]struct {
		values []string
		want   []string
	}{
		"by default":          {nil, nil},
		"enforced everywhere": {[]string{"config.defaults.enforcement=enforce"}, []string{"config.defaults.enforcement=enforce"}},
		"one replica":         {[]string{"replicas=1"}, []string{"replicas=1", "podDisruptionBudget.maxUnavailable=1 of 1"}},
		"no budget":           {[]string{"podDisruptionBudget.enabled=false"}, []string{"podDisruptionBudget.enabled=false"}},
		"no priority":         {[]string{"priorityClassName="}, []string{"priorityClassName is empty"}},
		"binds open":          {[]string{"webhooks.failurePolicies.bind=Ignore"}, []string{"webhooks.failurePolicies.bind=Ignore"}},
		"open namespaces":     {[]string{"webhooks.openNamespaces={lab}"}, []string{"claims in lab may get stale sandboxes"}},
	}
	h := helmForTest(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"install", release, h.chart, "--dry-run=client"}, ownSecret...)
			out, err := h.run(t.Context(), append(args, set(tc.values...)...)...)
			if err != nil {
				t.Fatal(err)
			}
			_, notes, _ := strings.Cut(out, "\nNOTES:\n")
			for _, always := range []string{
				"kubectl label namespace NAME freshbind.dev/enforcement=enforce", "helm test " + release + " --namespace " + namespace,
				"kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations -l app.kubernetes.io/name=freshbind",
			} {
				if !strings.Contains(notes, always) {
					t.Errorf("the notes do not say %q:\n%s", always, notes)
				}
			}
			warnings := strings.Split(notes, "WARNING: ")[1:]
			if len(warnings) != len(tc.want) {
				t.Fatalf("%d warnings, want %d:\n%s", len(warnings), len(tc.want), notes)
			}
			for i, want := range tc.want {
				if !strings.Contains(warnings[i], want) {
					t.Errorf("warning %q does not say %q", warnings[i], want)
				}
			}
		})
	}
}
