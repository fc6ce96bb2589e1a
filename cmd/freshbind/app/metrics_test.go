package app

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/freshbind/freshbind/controllers/pools"
	"github.com/freshbind/freshbind/hack/markdown"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/routefeed"
	"github.com/freshbind/freshbind/internal/routeserver"
	"github.com/freshbind/freshbind/internal/selftest"
	"github.com/freshbind/freshbind/internal/sentinel"
	"github.com/freshbind/freshbind/internal/servingcert"
	"github.com/freshbind/freshbind/routes"
	"github.com/freshbind/freshbind/scheduler"
	"github.com/freshbind/freshbind/webhooks"
)

// The tests of alerts and dashboards are a module of their own, and read there what is
// registered here: a dependency on this package would have them compile Kubernetes'
// clients once more, with the versions that Prometheus asks for.
func TestMetricsThatAlertsAreTestedWith(t *testing.T) {
	const list = "../../../test/alerts/metrics.txt"
	known := registered(t)
	var got []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		slices.Sort(known[name])
		got = append(got, strings.Join(append([]string{name}, known[name]...), " "))
	}
	if os.Getenv(markdown.UpdateDocs) != "" {
		if err := os.WriteFile(list, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("test/alerts/metrics.txt is not what is registered (-listed,+registered); %s=1 writes it:\n%s", markdown.UpdateDocs, diff)
	}
}

// registered are the labels of all metrics that the program registers for its own part,
// and of those that the API server tells of webhooks.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	reg := prometheus.NewRegistry()
	RegisterBuildInfo(reg, "manager", "v0")
	webhooks.NewMetrics(reg)
	webhooks.NewEntrance(reg, nil)
	pools.NewMetrics(reg)
	selftest.NewMetrics(reg)
	sentinel.NewMetrics(reg)
	routefeed.NewMetrics(reg, routes.New(routes.Options{}))
	scheduler.NewMetrics(reg)
	routeserver.NewMetrics(reg)
	liveread.NewMetrics(reg)
	servingcert.New(fake.NewClientset(), types.NamespacedName{}, reg, clock.RealClock{})
	known := described(reg)
	all, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatal("the registry of controller-runtime does not describe what it has")
	}
	maps.Copy(known, described(all))
	maps.Copy(known, admissionMetrics(t))
	maps.DeleteFunc(known, func(name string, _ []string) bool {
		return !strings.HasPrefix(name, "freshbind_") && !strings.HasPrefix(name, "leader_election_") &&
			!strings.HasPrefix(name, "apiserver_admission_webhook_")
	})
	return known
}

// admissionMetrics are what the API server tells of webhooks, which shows only once
// something has happened.
func admissionMetrics(t *testing.T) map[string][]string {
	t.Helper()
	admissionmetrics.Metrics.ObserveWebhookRejection(t.Context(), "x", "validating", "CREATE", admissionmetrics.WebhookRejectionCallingWebhookError, 500)
	admissionmetrics.Metrics.ObserveWebhookFailOpen(t.Context(), "x", "validating")
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string][]string{}
	for _, family := range families {
		for _, pair := range family.GetMetric()[0].GetLabel() {
			told[family.GetName()] = append(told[family.GetName()], pair.GetName())
		}
	}
	return told
}

// description is how a metric describes itself.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", .*variableLabels: \{([^}]*)\}\}$`)

// described are the names of metrics, with their labels; they need no sample.
func described(c prometheus.Collector) map[string][]string {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	out := map[string][]string{}
	for d := range descs {
		found := description.FindStringSubmatch(d.String())
		if found == nil {
			continue
		}
		out[found[1]] = strings.FieldsFunc(found[2], func(r rune) bool { return r == ',' })
	}
	return out
}
