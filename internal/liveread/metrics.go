package liveread

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// otherResource keeps the label a closed set.
const otherResource = "other"

const (
	resultFound    = "found"
	resultAbsent   = "absent"
	resultUnserved = "unserved"
	resultTimeout  = "timeout"
	resultCanceled = "canceled"
	resultError    = "error"
)

var results = []string{resultFound, resultAbsent, resultUnserved, resultTimeout, resultCanceled, resultError}

// Metrics counts reads. A nil *Metrics counts nothing.
type Metrics struct {
	reads     *prometheus.CounterVec
	joined    prometheus.Counter
	resources map[string]struct{}
}

// NewMetrics registers freshbind_live_reads_total and freshbind_live_reads_joined_total with reg. Resources that are not among those
// given are counted as "other". It panics if the metrics are registered already.
func NewMetrics(reg prometheus.Registerer, resources ...string) *Metrics {
	m := &Metrics{
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_live_reads_total",
			Help: "Reads of single objects sent to the API server. result is one of found, absent, unserved (an API version that is not served), " +
				"timeout, canceled (no caller was left) and error.",
		}, []string{"resource", "result"}),
		joined: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "freshbind_live_reads_joined_total",
			Help: "Callers that shared a read with one that came before them, and so cost none.",
		}),
		resources: make(map[string]struct{}, len(resources)),
	}
	for _, resource := range append([]string{otherResource}, resources...) {
		m.resources[resource] = struct{}{}
		for _, result := range results {
			m.reads.WithLabelValues(resource, result)
		}
	}
	reg.MustRegister(m.reads, m.joined)
	return m
}

func (m *Metrics) countRead(ref Ref, err error) {
	if m == nil {
		return
	}
	resource := ref.GVR.Resource
	if _, known := m.resources[resource]; !known {
		resource = otherResource
	}
	m.reads.WithLabelValues(resource, resultOf(err)).Inc()
}

func (m *Metrics) countJoined() {
	if m != nil {
		m.joined.Inc()
	}
}

func resultOf(err error) string {
	var unserved *unservedError
	switch {
	case err == nil:
		return resultFound
	case IsAbsent(err):
		return resultAbsent
	case errors.As(err, &unserved):
		return resultUnserved
	case errors.Is(err, context.DeadlineExceeded):
		return resultTimeout
	case errors.Is(err, context.Canceled):
		return resultCanceled
	default:
		return resultError
	}
}
