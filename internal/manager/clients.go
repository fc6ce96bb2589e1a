package manager

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/cert"

	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/internal/tracing"
	"github.com/freshbind/freshbind/scheduler"
	"github.com/freshbind/freshbind/webhooks"
)

// newTurns lets one namespace have half of the processors at most, and always
// leaves others a place.
func newTurns(processors int) *fair.Turns { return fair.NewTurns(processors+1, max(1, processors/2)) }

// newEntrance is what stands before the webhooks, but not before the scheduler
// extender: schedulers ask that, and they know no namespace.
func (o *process) newEntrance(reg prometheus.Registerer) func(path string, next http.Handler) http.Handler {
	e := webhooks.NewEntrance(reg, fair.NewTurns(max(1, runtime.GOMAXPROCS(0)/2), 1))
	e.RequireCertificate, e.Names = o.ClientCAFile != "", o.ClientNames
	return func(path string, next http.Handler) http.Handler {
		switch path {
		case scheduler.FilterPath, scheduler.PreemptPath, scheduler.PrioritizePath:
			return next
		}
		if o.Traced {
			next = tracing.Handler(path, next)
		}
		return e.Before(next)
	}
}

// clientCertificates has the certificates of clients verified, where they have
// one. Who has to have one is for the entrance: probes and schedulers need none.
func (o *process) clientCertificates() (func(*tls.Config), error) {
	if o.ClientCAFile == "" {
		return nil, nil
	}
	pool, err := cert.NewPool(o.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CAs of clients: %w", err)
	}
	return func(c *tls.Config) { c.ClientCAs, c.ClientAuth = pool, tls.VerifyClientCertIfGiven }, nil
}
