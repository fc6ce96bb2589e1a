package routeserver

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count what gateways asked.
type Metrics struct {
	checked      *prometheus.CounterVec
	streams      prometheus.Gauge
	unauthorized prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		checked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_routes_checks_total",
			Help: "Checks by gateway (" + strings.Join(conventions(), ", ") + ") and by result (" + strings.Join(reasons(), ", ") + ").",
		}, []string{"gateway", "result"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "freshbind_routes_streams", Help: "Clients that follow the changes of routes.",
		}),
		unauthorized: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "freshbind_routes_unauthorized_total", Help: "Requests without a token or certificate that is accepted.",
		}),
	}
	reg.MustRegister(m.checked, m.streams, m.unauthorized)
	return m
}

// checks returns what counts the results of one gateway's checks.
func (m *Metrics) checks(gateway string) func(result string) {
	counters := make(map[string]prometheus.Counter)
	for _, reason := range reasons() {
		counters[reason] = m.checked.WithLabelValues(gateway, reason)
	}
	return func(result string) { counters[result].Inc() }
}
