package webhooks

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/freshbind/freshbind/internal/platform"
)

// Metrics counts verdicts. The API server may ask for one write several times
// (it calls again after each conflict), and each answer counts.
type Metrics struct {
	verdicts *prometheus.CounterVec
	duration *prometheus.HistogramVec
	cold     *coldStarts
}

// NewMetrics returns metrics registered with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_bind_verdicts_total",
			Help: "Verdicts on writes that give a claim a sandbox or a pool a member. " +
				"operation: bind (of a bare pod: release, then warmstart), coldstart, birth, return or foreigncontroller. " +
				"verdict: allow, tolerate, deny or error (could not decide). " +
				"reason: one of the documented reasons, or Undecided. mode: enforce or audit (a deny changed nothing).",
		}, []string{"operation", "verdict", "reason", "mode"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "freshbind_verdict_duration_seconds",
			Help:    "Time from request to verdict, live reads included, by operation.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2},
		}, []string{"operation"}),
		cold: newColdStarts(reg),
	}
	reg.MustRegister(m.verdicts, m.duration)
	return m
}

func (m *Metrics) observe(w platform.Write, o outcome, took time.Duration) {
	op := string(w.Operation)
	m.verdicts.WithLabelValues(op, o.verdict(), o.reason(), string(o.mode)).Inc()
	m.duration.WithLabelValues(op).Observe(took.Seconds())
	m.cold.observe(w, o)
}
