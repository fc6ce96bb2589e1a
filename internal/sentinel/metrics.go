package sentinel

import "github.com/prometheus/client_golang/prometheus"

const (
	reasonFull     = "full"
	reasonAged     = "aged"
	reasonReturned = "returned"
	reasonRestored = "restored"

	resultSent    = "sent"
	resultRefused = "refused"
	resultFailed  = "failed"
)

// Metrics count what a sentinel does.
type Metrics struct {
	deletions prometheus.Gauge
	gateways  prometheus.Gauge
	round     prometheus.Gauge
	forgotten *prometheus.CounterVec
	messages  *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		deletions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "freshbind_sentinel_deletions", Help: "Deletions that are remembered and repeated.",
		}),
		gateways: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "freshbind_sentinel_gateways", Help: "Gateways that are told.",
		}),
		round: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "freshbind_sentinel_round_seconds",
			Help: "How long it took to repeat all deletions to the gateway that was told them all last, the pause before the next time included: how long a route that came back can stay.",
		}),
		forgotten: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_sentinel_forgotten_total",
			Help: "Deletions that are no longer repeated, by reason (full: there were too many, aged, returned: the name is in use again, restored: etcd was).",
		}, []string{"reason"}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_sentinel_messages_total", Help: "Messages to gateways by result (sent, refused, failed).",
		}, []string{"result"}),
	}
	for _, reason := range []string{reasonFull, reasonAged, reasonReturned, reasonRestored} {
		m.forgotten.WithLabelValues(reason)
	}
	for _, result := range []string{resultSent, resultRefused, resultFailed} {
		m.messages.WithLabelValues(result)
	}
	reg.MustRegister(m.deletions, m.gateways, m.round, m.forgotten, m.messages)
	return m
}
