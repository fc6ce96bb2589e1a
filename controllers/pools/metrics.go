package pools

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/freshness"
)

// Metrics tell of pools that are enforced. No label names a member.
type Metrics struct {
	members *prometheus.GaugeVec
	state   *prometheus.GaugeVec
}

// NewMetrics returns metrics registered with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		members: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "freshbind_pool_members",
			Help: "Idle members of a pool that are not being deleted. state: ready, updated (of the revision in force), " +
				"claimable (ready, and given to claims now), stale, or unknown (equal to no known revision). A member can be in several.",
		}, []string{"namespace", "warmpool_name", "state"}),
		state: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "freshbind_rollout_state",
			Help: "1 for the state that a pool's rollout is in, 0 for the others: Complete, Progressing, Failed, Paused.",
		}, []string{"namespace", "warmpool_name", "state"}),
	}
	reg.MustRegister(m.members, m.state)
	return m
}

func (m *Metrics) observe(pool types.NamespacedName, plan freshness.Plan) {
	for state, n := range map[string]int{
		"ready": plan.Counts.Ready, "updated": plan.Counts.Updated, "claimable": plan.Counts.Claimable,
		"stale": plan.Counts.Stale, "unknown": plan.Counts.Unknown,
	} {
		m.members.WithLabelValues(pool.Namespace, pool.Name, state).Set(float64(n))
	}
	for _, state := range freshness.States() {
		value := 0.0
		if state == plan.Rollout.State {
			value = 1
		}
		m.state.WithLabelValues(pool.Namespace, pool.Name, string(state)).Set(value)
	}
}

// forget drops a pool that is gone, or not ours any more.
func (m *Metrics) forget(pool types.NamespacedName) {
	labels := prometheus.Labels{"namespace": pool.Namespace, "warmpool_name": pool.Name}
	m.members.DeletePartialMatch(labels)
	m.state.DeletePartialMatch(labels)
}
