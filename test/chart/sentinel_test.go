package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/freshbind/freshbind/cmd/freshbind/app"
)

const sentinelName = release + "-sentinel"

func TestSentinelOnRequestOnly(t *testing.T) {
	for _, o := range render(t, certManager) {
		if strings.Contains(o.GetName(), "sentinel") {
			t.Errorf("%s %s without sentinel.enabled", o.GetKind(), o.GetName())
		}
	}
	h := helmForTest(t)
	for name, tc := range map[string]struct{ values, err string }{
		"no gateway":            {"sentinel.enabled=true", "sentinel.gatewayServices: "},
		"without its namespace": {"sentinel.gatewayServices={gateway}", "/sentinel/gatewayServices/0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.run(t.Context(), append([]string{"template", release, h.chart, certManager}, set(tc.values)...)...)
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), ".", "/"), strings.ReplaceAll(tc.err, ".", "/")) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

// What the chart starts is what the program takes, and it reads only what it needs.
func TestSentinelCommandTakesWhatTheChartSays(t *testing.T) {
	objects := render(t, append(set("sentinel.enabled=true", "sentinel.gatewayServices={a/gateway,b/gateway,b/other}", "sentinel.interval=7s"), certManager)...)
	o := app.NewSentinelOptions()
	parseCommand(t, objects, sentinelName, o.AddFlags, "routes", "sentinel")
	if err := o.Complete(); err != nil {
		t.Error(err)
	}
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"a/gateway", "b/gateway", "b/other"}, o.Services); diff != "" {
		t.Error(diff)
	}
	var rights []string
	for _, object := range objects {
		if kind := object.GetKind(); object.GetName() != sentinelName || kind != "Role" && kind != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		convert(t, object, &role)
		for _, rule := range role.Rules {
			rights = append(rights, fmt.Sprint(role.Namespace, rule.APIGroups, rule.Resources, rule.Verbs))
		}
	}
	slices.Sort(rights)
	want := []string{
		"[agents.kruise.io] [sandboxes] [get list watch]",
		"a[discovery.k8s.io] [endpointslices] [get list watch]",
		"b[discovery.k8s.io] [endpointslices] [get list watch]",
	}
	if diff := cmp.Diff(want, rights); diff != "" {
		t.Error(diff)
	}
}
