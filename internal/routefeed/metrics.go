package routefeed

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/freshbind/freshbind/routes"
)

const (
	resultDecided = "decided"
	resultFailed  = "failed"
)

// Metrics count what a feed does.
type Metrics struct {
	events   *prometheus.CounterVec
	lists    *prometheus.CounterVec
	reads    *prometheus.CounterVec
	sessions prometheus.Counter
}

// NewMetrics registers the metrics of the feed and of its table.
func NewMetrics(reg prometheus.Registerer, table *routes.Table) *Metrics {
	m := &Metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_routes_events_total",
			Help: "Lists and events of the watches by kind (sandboxes, pods) and by what the table did with them (applied, stale, fenced, undecided, superseded, restored, ignored, out-of-scope).",
		}, []string{"kind", "outcome"}),
		lists: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_routes_lists_total", Help: "Complete lists by kind (sandboxes, pods).",
		}, []string{"kind"}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_routes_live_reads_total",
			Help: "Live reads for what events alone do not decide, by kind (sandboxes, pods) and result (decided, failed).",
		}, []string{"kind", "result"}),
		sessions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "freshbind_routes_sessions_total", Help: "Views that were begun: one at the start, and one whenever versions went back or too much was undecided.",
		}),
	}
	for _, kind := range []routes.Kind{routes.Sandboxes, routes.Pods} {
		for _, outcome := range routes.Outcomes() {
			m.events.WithLabelValues(kind.String(), outcome.String())
		}
		for _, result := range []string{resultDecided, resultFailed} {
			m.reads.WithLabelValues(kind.String(), result)
		}
	}
	reg.MustRegister(m.events, m.lists, m.reads, m.sessions, &tableCollector{table})
	return m
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	maxAge  = describe("freshbind_routes_view_max_age_seconds", "How old the view may be for an answer.")
	viewAge = describe("freshbind_routes_view_age_seconds", "How old the view of the cluster is at most; +Inf while it is not complete.")
	entries = describe("freshbind_routes_table_entries", "What the table holds, by kind (sandboxes, pods).", "kind")
	fences  = describe("freshbind_routes_fences", "Deleted objects that are remembered one by one, by kind (sandboxes, pods).", "kind")
	floor   = describe("freshbind_routes_floor_version", "The resourceVersion up to which an unknown object needs a live read, by kind (sandboxes, pods).", "kind")
	waiting = describe("freshbind_routes_undecided", "Objects that wait for a live read.")
)

// tableCollector reports what a table holds when it is asked.
type tableCollector struct{ table *routes.Table }

// Describe implements prometheus.Collector.
func (c *tableCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{viewAge, maxAge, entries, fences, floor, waiting} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *tableCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	age := math.Inf(1)
	if known, ok := c.table.Age(); ok {
		age = known.Seconds()
	}
	gauge(viewAge, age)
	gauge(maxAge, c.table.MaxAge().Seconds())
	s := c.table.Stats()
	gauge(waiting, float64(s.Undecided))
	sandboxes, pods := routes.Sandboxes.String(), routes.Pods.String()
	gauge(entries, float64(s.Routes), sandboxes)
	gauge(entries, float64(s.Pods), pods)
	gauge(fences, float64(s.SandboxFences), sandboxes)
	gauge(fences, float64(s.PodFences), pods)
	gauge(floor, float64(s.SandboxFloor), sandboxes)
	gauge(floor, float64(s.PodFloor), pods)
}
