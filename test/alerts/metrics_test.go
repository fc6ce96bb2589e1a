package alerts

import (
	"context"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/freshbind/freshbind/cmd/freshbind/app"
	"github.com/freshbind/freshbind/controllers/pools"
	"github.com/freshbind/freshbind/internal/routefeed"
	"github.com/freshbind/freshbind/internal/selftest"
	"github.com/freshbind/freshbind/internal/sentinel"
	"github.com/freshbind/freshbind/internal/servingcert"
	"github.com/freshbind/freshbind/routes"
	"github.com/freshbind/freshbind/webhooks"
)

var known struct {
	once   sync.Once
	labels map[string][]string
}

// registered are the labels of all metrics that the program registers, and of those
// that the API server tells of webhooks.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	known.once.Do(func() {
		reg := prometheus.NewRegistry()
		app.RegisterBuildInfo(reg, "manager", "v0")
		webhooks.NewMetrics(reg)
		pools.NewMetrics(reg)
		selftest.NewMetrics(reg)
		sentinel.NewMetrics(reg)
		routefeed.NewMetrics(reg, routes.New(routes.Options{}))
		servingcert.New(fake.NewClientset(), types.NamespacedName{}, reg, clock.RealClock{})
		known.labels = described(reg)
		all, ok := metrics.Registry.(prometheus.Collector)
		if !ok {
			t.Fatal("the registry of controller-runtime does not describe what it has")
		}
		for name, of := range described(all) {
			known.labels[name] = of
		}
		ctx := context.Background()
		admissionmetrics.Metrics.ObserveWebhookRejection(ctx, "x", "validating", "CREATE", admissionmetrics.WebhookRejectionCallingWebhookError, 500)
		admissionmetrics.Metrics.ObserveWebhookFailOpen(ctx, "x", "validating")
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			var of []string
			for _, pair := range family.GetMetric()[0].GetLabel() {
				of = append(of, pair.GetName())
			}
			known.labels[family.GetName()] = of
		}
	})
	return known.labels
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

// alertNames are all alerts of the chart.
func alertNames(t *testing.T) []string {
	t.Helper()
	list, err := os.ReadFile("../../charts/freshbind/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^- alert: (\S+)$`).FindAllStringSubmatch(string(list), -1) {
		out = append(out, m[1])
	}
	return out
}
