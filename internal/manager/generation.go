package manager

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// generation registers the metrics of one assembly, so that the next one can
// have the same names.
type generation struct {
	prometheus.Registerer
	mu   sync.Mutex
	mine []prometheus.Collector
}

func (g *generation) Register(c prometheus.Collector) error {
	if err := g.Registerer.Register(c); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mine = append(g.mine, c)
	return nil
}

func (g *generation) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := g.Register(c); err != nil {
			panic(err)
		}
	}
}

// retire takes the metrics away.
func (g *generation) retire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.mine {
		g.Unregister(c)
	}
	g.mine = nil
}
