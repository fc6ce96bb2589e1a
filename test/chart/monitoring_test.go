package chart

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freshbind/freshbind/test/controlplane"
)

// monitored are values with all that watches Freshbind.
var monitored = append(set("metrics.prometheusRule.enabled=true", "metrics.dashboard.enabled=true", "metrics.podMonitor.enabled=true",
	"metrics.prometheusRule.labels.release=kps"), certManager)

func repository(t *testing.T) string {
	t.Helper()
	root, err := controlplane.RepositoryDir()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestEveryAlertHasARunbook(t *testing.T) {
	rule := find(render(t, monitored...), "PrometheusRule", release)
	groups, _, _ := unstructured.NestedSlice(rule.Object, "spec", "groups")
	var alerts []string
	for _, group := range groups {
		rules, _, _ := unstructured.NestedSlice(group.(map[string]any), "rules")
		for _, r := range rules {
			alert := r.(map[string]any)
			name, _ := alert["alert"].(string)
			alerts = append(alerts, name)
			url, _, _ := unstructured.NestedString(alert, "annotations", "runbook_url")
			if !strings.HasSuffix(url, "docs/runbooks.md#"+strings.ToLower(name)) {
				t.Errorf("%s: runbook is %s", name, url)
			}
			if summary, _, _ := unstructured.NestedString(alert, "annotations", "summary"); summary == "" {
				t.Errorf("%s has no summary", name)
			}
		}
	}
	doc, err := os.ReadFile(filepath.Join(repository(t), "docs", "runbooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	var sections []string
	for _, m := range regexp.MustCompile(`(?m)^## (\S+)$`).FindAllStringSubmatch(string(doc), -1) {
		sections = append(sections, m[1])
	}
	if diff := cmp.Diff(alerts, sections); diff != "" {
		t.Errorf("alerts and sections of docs/runbooks.md (-alerts,+sections):\n%s", diff)
	}
}

// The namespace of a pool's metrics is the pool's, not that of who is scraped.
func TestMonitorsHonorLabels(t *testing.T) {
	for kind, tc := range map[string]struct{ value, endpoints string }{
		"ServiceMonitor": {"metrics.serviceMonitor.enabled=true", "endpoints"},
		"PodMonitor":     {"metrics.podMonitor.enabled=true", "podMetricsEndpoints"},
	} {
		endpoints, _, _ := unstructured.NestedSlice(find(render(t, append(set(tc.value), certManager)...), kind, release).Object, "spec", tc.endpoints)
		if len(endpoints) != 1 || endpoints[0].(map[string]any)["honorLabels"] != true {
			t.Errorf("%s scrapes %v, want honorLabels", kind, endpoints)
		}
	}
}

// Every Service of metrics is scraped once, in the way that it is served: only the manager's can be secure.
func TestServiceMonitorsScrapeAsIsServed(t *testing.T) {
	others := set("routes.enabled=true", "routes.tokenSecret=t", "sentinel.enabled=true", "sentinel.gatewayServices={ns/gateway}")
	const manager, routes, sentinel = release + "-metrics", release + "-routes-metrics", release + "-sentinel-metrics"
	for name, tc := range map[string]struct {
		args []string
		want map[string][]string
	}{
		"plain":                {others, map[string][]string{manager: {"http"}, routes: {"http"}, sentinel: {"http"}}},
		"secure":               {append(set("metrics.secure=true"), others...), map[string][]string{manager: {"https"}, routes: {"http"}, sentinel: {"http"}}},
		"secure, nothing else": {set("metrics.secure=true"), map[string][]string{manager: {"https"}}},
		"secure, and routes":   {append(set("metrics.secure=true"), others[:4]...), map[string][]string{manager: {"https"}, routes: {"http"}}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := render(t, append(append(set("metrics.serviceMonitor.enabled=true"), certManager), tc.args...)...)
			got := map[string][]string{}
			for _, monitor := range objects {
				if monitor.GetKind() != "ServiceMonitor" {
					continue
				}
				for _, service := range objects {
					if service.GetKind() == "Service" && selects(t, monitor, service) {
						got[service.GetName()] = append(got[service.GetName()], scheme(monitor))
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("how Services are scraped (-want,+got):\n%s", diff)
			}
		})
	}
}

func selects(t *testing.T, monitor, service *unstructured.Unstructured) bool {
	t.Helper()
	in, _, _ := unstructured.NestedMap(monitor.Object, "spec", "selector")
	var of metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(in, &of, true); err != nil {
		t.Fatal(err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&of)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(service.GetLabels()))
}

// scheme is how a ServiceMonitor scrapes; no token is sent in clear.
func scheme(monitor *unstructured.Unstructured) string {
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	endpoint := endpoints[0].(map[string]any)
	switch {
	case endpoint["scheme"] != nil:
		return endpoint["scheme"].(string)
	case endpoint["bearerTokenFile"] != nil:
		return "http, with a token"
	}
	return "http"
}

// What alerts and dashboard ask for is what the program says.
func TestMetricsThatAreWatchedExist(t *testing.T) {
	root := repository(t)
	var source strings.Builder
	for _, dir := range []string{"cmd", "internal", "webhooks", "controllers", "scheduler"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			source.Write(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var asked []string
	for _, file := range []string{"alerts.yaml", "slo.yaml", "dashboard.json", "dashboard-namespace.json"} {
		content, err := os.ReadFile(filepath.Join(root, "charts", "freshbind", "files", file))
		if err != nil {
			t.Fatal(err)
		}
		// What is recorded has a level, and a colon, before its name.
		for _, m := range regexp.MustCompile(`(?:^|[^:a-z_])(freshbind_[a-z_]+)`).FindAllStringSubmatch(string(content), -1) {
			asked = append(asked, m[1])
		}
	}
	slices.Sort(asked)
	for _, metric := range slices.Compact(asked) {
		if !strings.Contains(source.String(), `"`+strings.TrimSuffix(metric, "_bucket")+`"`) {
			t.Errorf("nothing registers the metric %s", metric)
		}
	}
	if len(asked) == 0 {
		t.Error("no metric is asked for")
	}
}

// Service levels are recorded where somebody wants them, and the alerts stay.
func TestServiceLevelsAreRecorded(t *testing.T) {
	groups := func(args ...string) map[string]int {
		rule := find(render(t, append(args, monitored...)...), "PrometheusRule", release)
		found, _, _ := unstructured.NestedSlice(rule.Object, "spec", "groups")
		out := map[string]int{}
		for _, group := range found {
			rules, _, _ := unstructured.NestedSlice(group.(map[string]any), "rules")
			for _, r := range rules {
				if name, _, _ := unstructured.NestedString(r.(map[string]any), "record"); name != "" {
					out["recorded"]++
				} else {
					out["alerts"]++
				}
			}
		}
		return out
	}
	before, after := groups(), groups(set("metrics.prometheusRule.serviceLevels=true")...)
	if before["recorded"] != 0 || after["recorded"] != 10 || after["alerts"] != before["alerts"] || before["alerts"] == 0 {
		t.Errorf("by default %v, when wanted %v; want 10 recorded only then", before, after)
	}
}

// Grafana reads each dashboard, and shows it beside the others.
func TestDashboards(t *testing.T) {
	boards := find(render(t, monitored...), "ConfigMap", release+"-dashboard")
	data, _, _ := unstructured.NestedStringMap(boards.Object, "data")
	uids := map[string]string{}
	for name, text := range data {
		var board struct {
			UID, Title string
			Panels     []struct{ ID int }
		}
		if err := json.Unmarshal([]byte(text), &board); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ids := map[int]bool{}
		for _, p := range board.Panels {
			ids[p.ID] = true
		}
		if board.Title == "" || len(ids) != len(board.Panels) || len(ids) == 0 {
			t.Errorf("%s has title %q, and %d panels with %d ids", name, board.Title, len(board.Panels), len(ids))
		}
		uids[board.UID] = name
	}
	if len(uids) != 2 {
		t.Errorf("dashboards by uid: %v, want two", uids)
	}
}
