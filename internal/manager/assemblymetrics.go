package manager

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// assemblyMetrics registers the metrics of one assembly, so that the next one can
// have the same names.
type assemblyMetrics struct {
	prometheus.Registerer
	mu   sync.Mutex
	mine []prometheus.Collector
}

func (g *assemblyMetrics) Register(c prometheus.Collector) error {
	if err := g.Registerer.Register(c); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mine = append(g.mine, c)
	return nil
}

func (g *assemblyMetrics) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := g.Register(c); err != nil {
			panic(err)
		}
	}
}

// retire takes the metrics away.
func (g *assemblyMetrics) retire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.mine {
		g.Unregister(c)
	}
	g.mine = nil
}
