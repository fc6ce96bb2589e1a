package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freshbind/freshbind/cmd/freshbind/app"
)

const routesName = release + "-routes"

func TestRoutesAreServedOnRequestOnly(t *testing.T) {
	for _, o := range render(t, certManager) {
		if strings.Contains(o.GetName(), "routes") {
			t.Errorf("%s %s without routes.enabled", o.GetKind(), o.GetName())
		}
	}
	var kinds []string
	for _, o := range render(t, append(set("routes.enabled=true", "routes.tokenSecret=tokens"), certManager)...) {
		if strings.HasPrefix(o.GetName(), routesName) {
			kinds = append(kinds, o.GetKind())
		}
	}
	slices.Sort(kinds)
	want := []string{
		"Certificate", "ClusterRole", "ClusterRoleBinding", "Deployment", "FlowSchema", "NetworkPolicy", "PodDisruptionBudget",
		"PriorityLevelConfiguration", "Service", "Service", "ServiceAccount",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestRoutesNeedToKnowWhoMayAsk(t *testing.T) {
	h := helmForTest(t)
	for name, tc := range map[string]struct {
		values []string
		err    string
	}{
		"nobody":                  {[]string{"routes.enabled=true"}, "routes.tokenSecret, routes.clients.caBundle: one of them is required"},
		"names without CAs":       {[]string{"routes.enabled=true", "routes.tokenSecret=t", "routes.clients.names={a}"}, "routes.clients.names: routes.clients.caBundle is missing"},
		"a Secret, and none here": {[]string{"routes.enabled=true", "routes.tokenSecret=t", "certificates.source=Secret", "certificates.secret.name=tls", "certificates.secret.caBundle=PEM"}, "routes.certificateSecret: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.run(t.Context(), append([]string{"template", release, h.chart, certManager}, set(tc.values...)...)...)
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

// What the chart starts is what the program takes, and it can only read.
func TestRoutesCommandTakesWhatTheChartSays(t *testing.T) {
	objects := render(t, append(set("routes.enabled=true", "routes.tokenSecret=tokens", "routes.clients.caBundle=PEM", "routes.clients.names={a,b}",
		"namespaces={team-x,team-y}", "routes.maxAge=7s"), certManager)...)
	o := app.NewRoutesServeOptions()
	parseCommand(t, objects, routesName, o.AddFlags, "routes", "serve")
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"team-x", "team-y"}, o.Namespaces); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, o.ClientNames); diff != "" {
		t.Error(diff)
	}
	var role rbacv1.ClusterRole
	convert(t, find(objects, "ClusterRole", routesName), &role)
	for _, rule := range role.Rules {
		if diff := cmp.Diff([]string{"get", "list", "watch"}, rule.Verbs); diff != "" {
			t.Errorf("verbs on %v: %s", rule.Resources, diff)
		}
	}
	for _, namespace := range []string{"team-x", "team-y"} {
		if !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "RoleBinding" && o.GetName() == routesName && o.GetNamespace() == namespace
		}) {
			t.Errorf("no rights in namespace %s", namespace)
		}
	}
	if find(objects, "ClusterRoleBinding", routesName) != nil {
		t.Error("rights in all namespaces")
	}
}

// parseCommand has the flags read what the chart starts in a Deployment, which is to
// be that command.
func parseCommand(t *testing.T, objects []*unstructured.Unstructured, deployment string, addFlags func(*pflag.FlagSet), command ...string) {
	t.Helper()
	var d appsv1.Deployment
	convert(t, find(objects, "Deployment", deployment), &d)
	args := d.Spec.Template.Spec.Containers[0].Args
	if diff := cmp.Diff(command, args[:len(command)]); diff != "" {
		t.Fatal(diff)
	}
	flags := pflag.NewFlagSet(deployment, pflag.ContinueOnError)
	addFlags(flags)
	if err := flags.Parse(args[len(command):]); err != nil {
		t.Fatal(err)
	}
}

func convert(t *testing.T, u *unstructured.Unstructured, to any) {
	t.Helper()
	if u == nil {
		t.Fatal("it is not rendered")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, to); err != nil {
		t.Fatal(err)
	}
}
