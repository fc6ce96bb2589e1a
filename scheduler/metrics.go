package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// outcome is what became of a request. The set is closed.
type outcome string

const (
	// passed: the pod is no member, or a member with nothing against it.
	passed outcome = "passed"
	// refused: a member that is about to be deleted.
	refused outcome = "refused"
	// filtered: some nodes were taken away.
	filtered outcome = "filtered"
	// undecided: let pass because a cache could not tell.
	undecided outcome = "undecided"
	// invalid: the request could not be read.
	invalid outcome = "invalid"
)

const (
	verbFilter     = "filter"
	verbPreempt    = "preempt"
	verbPrioritize = "prioritize"
)

// Metrics counts what the scheduler asks, and what is done for it.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	requeues prometheus.Counter
}

// NewMetrics returns metrics registered with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_scheduler_requests_total",
			Help: "Requests of schedulers. verb: filter, preempt or prioritize. result: passed, refused (a member that is " +
				"about to be deleted), filtered (nodes that leave were taken away), undecided (passed all the same) or invalid.",
		}, []string{"verb", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "freshbind_scheduler_request_duration_seconds",
			Help:    "Time from request to answer, by verb; pods are scheduled one after the other, so that it adds to each.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1},
		}, []string{"verb"}),
		requeues: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "freshbind_scheduler_requeues_total",
			Help: "Refused pods that schedulers were asked to look at again, because nothing speaks against them any more.",
		}),
	}
	reg.MustRegister(m.requests, m.duration, m.requeues)
	return m
}

func (m *Metrics) count(verb string, o outcome) {
	m.requests.WithLabelValues(verb, string(o)).Inc()
}

func (m *Metrics) took(verb string, d time.Duration) {
	m.duration.WithLabelValues(verb).Observe(d.Seconds())
}
