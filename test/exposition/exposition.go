// Package exposition reads what a program counts, in the text format of Prometheus.
package exposition

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Sample is the value of a counter or a gauge with one set of labels.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Has reports whether the sample has all of these labels, each written as
// operation="bind". It may have others.
func (s Sample) Has(labels ...string) bool {
	for _, l := range labels {
		key, quoted, _ := strings.Cut(l, "=")
		value, err := strconv.Unquote(quoted)
		if got, ok := s.Labels[key]; err != nil || !ok || got != value {
			return false
		}
	}
	return true
}

// Metrics are samples by the name of their metric.
type Metrics map[string][]Sample

// Parse leaves histograms and summaries out. The error is that of the format.
func Parse(text string) (Metrics, error) {
	// The parser takes a last line without its end for a broken one.
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	out := Metrics{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			if value, ok := valueOf(m); ok {
				out[name] = append(out[name], Sample{labelsOf(m), value})
			}
		}
	}
	return out, nil
}

func valueOf(m *dto.Metric) (float64, bool) {
	switch {
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue(), true
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue(), true
	case m.GetUntyped() != nil:
		return m.GetUntyped().GetValue(), true
	}
	return 0, false
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range m.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// Sum adds the samples of a metric that have all of these labels, as Has says.
func (m Metrics) Sum(name string, labels ...string) float64 {
	sum := 0.0
	for _, s := range m[name] {
		if s.Has(labels...) {
			sum += s.Value
		}
	}
	return sum
}

// OfAPIServer asks the API server what it counts.
func OfAPIServer(ctx context.Context, cfg *rest.Config) (Metrics, error) {
	api, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("build a client for metrics: %w", err)
	}
	text, err := api.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the API server what it counts: %w", err)
	}
	return Parse(string(text))
}
