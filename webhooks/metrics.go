package webhooks

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/freshbind/freshbind/internal/freshness"
)

// Metrics counts verdicts. The API server may ask for one write several times
// (it calls again after each conflict), and each answer counts.
type Metrics struct {
	verdicts *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics returns metrics registered with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_bind_verdicts_total",
			Help: "Verdicts on writes that give a claim a sandbox or a pool a member. " +
				"operation: bind, coldstart or birth. verdict: allow, tolerate, deny or error (could not decide). " +
				"reason: one of the documented reasons, or Undecided. mode: enforce or audit (a deny changed nothing).",
		}, []string{"platform", "operation", "verdict", "reason", "mode"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "freshbind_verdict_duration_seconds",
			Help:    "Time from request to verdict, live reads included, by operation.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2},
		}, []string{"operation"}),
	}
	reg.MustRegister(m.verdicts, m.duration)
	return m
}

func (m *Metrics) observe(platform string, op freshness.Operation, o outcome, took time.Duration) {
	m.verdicts.WithLabelValues(platform, string(op), o.verdict(), o.reason(), string(o.mode)).Inc()
	m.duration.WithLabelValues(string(op)).Observe(took.Seconds())
}
