package sentinel

import (
	"context"
	"net/http"
	"sync"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// maxGateways bounds those that deletions are sent to.
const maxGateways = 256

// Sentinel sends gateways the deletions that are remembered.
type Sentinel struct {
	deletions *Deletions
	client    *http.Client
	pace      Pace
	metrics   *Metrics

	mu sync.Mutex
	// wanted are the URLs of the gateways; changed wakes whoever starts them.
	wanted  map[string]bool
	changed chan struct{}
}

// New returns a sentinel of no gateways.
func New(deletions *Deletions, client *http.Client, pace Pace, metrics *Metrics) *Sentinel {
	return &Sentinel{deletions: deletions, client: client, pace: pace, metrics: metrics, changed: make(chan struct{}, 1)}
}

// SetGateways says where gateways take messages now.
func (s *Sentinel) SetGateways(urls []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = make(map[string]bool, len(urls))
	for _, url := range urls {
		s.wanted[url] = true
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Start sends to gateways until ctx ends.
func (s *Sentinel) Start(ctx context.Context) error {
	running := map[string]context.CancelFunc{}
	var group sync.WaitGroup
	defer group.Wait()
	for {
		s.mu.Lock()
		wanted := s.wanted
		s.mu.Unlock()
		for url, stop := range running {
			if !wanted[url] {
				stop()
				delete(running, url)
			}
		}
		for url := range wanted {
			if running[url] != nil {
				continue
			}
			if len(running) >= maxGateways {
				logf.FromContext(ctx).Info("Too many gateways; some are not told", "limit", maxGateways)
				break
			}
			own, stop := context.WithCancel(ctx)
			running[url] = stop
			g := &gateway{url: url, client: s.client, deletions: s.deletions, pace: s.pace, metrics: s.metrics}
			group.Go(func() { g.run(own) })
		}
		s.metrics.gateways.Set(float64(len(running)))
		select {
		case <-s.changed:
		case <-ctx.Done():
			for _, stop := range running {
				stop()
			}
			return nil
		}
	}
}
