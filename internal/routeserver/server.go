package routeserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/routes"
)

const (
	// maxHeader bounds the headers of a request in bytes, maxBody what follows
	// them: a check needs none of it.
	maxHeader = 32 << 10
	maxBody   = 64 << 10
	// maxConnections bounds the gateways' connections, maxStreams those that follow
	// changes.
	maxConnections = 4096
	maxStreams     = 256

	headerTimeout   = 5 * time.Second
	requestTimeout  = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 5 * time.Second
)

// Options say how to serve.
type Options struct {
	Address string
	// TLS has the server's certificate, and the CAs of clients.
	TLS *tls.Config
	// Tokens and Clients are who is let in; one of them is required.
	Tokens  *Tokens
	Clients *Clients
}

// Server answers gateways.
type Server struct {
	table   *routes.Table
	options Options
	metrics *Metrics
	clock   clock.WithTicker
	streams chan struct{}
	// stopped is closed at the end, for what would go on for an hour.
	stopped chan struct{}
}

// New returns a server that lets nobody in unasked.
func New(table *routes.Table, o Options, m *Metrics) (*Server, error) {
	if o.Tokens == nil && o.Clients == nil {
		return nil, errNoAuth
	}
	return &Server{
		table: table, options: o, metrics: m, clock: clock.RealClock{},
		streams: make(chan struct{}, maxStreams), stopped: make(chan struct{}),
	}, nil
}

// NeedLeaderElection is false: every replica serves.
func (*Server) NeedLeaderElection() bool { return false }

// Handler is what the server answers with.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/routes", s.stream)
	mux.HandleFunc("GET /v1/routes/{id}", s.get)
	mux.HandleFunc(pathNginx, s.check(nginx))
	mux.HandleFunc(pathTraefik, s.check(traefik))
	// The mux would clean the client's path, and redirect to what it made of it.
	envoy, grpc := s.check(envoyHTTP), s.grpc()
	return s.authenticated(bounded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
			grpc.ServeHTTP(w, r)
		case strings.HasPrefix(r.RequestURI, pathEnvoy+"/"):
			envoy(w, r)
		default:
			mux.ServeHTTP(w, r)
		}
	})))
}

// bounded keeps what a client sends small.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		next.ServeHTTP(w, r)
	})
}

// Start serves until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	listener, err := net.Listen("tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("listening for gateways: %w", err)
	}
	return s.Serve(ctx, listener)
}

// Serve is Start on a listener, which it closes.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	log := logf.FromContext(ctx).WithName("routes")
	server := &http.Server{
		Handler: s.Handler(), TLSConfig: s.options.TLS, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: idleTimeout,
	}
	if s.options.Tokens != nil {
		go s.options.Tokens.follow(logf.IntoContext(ctx, log), s.clock)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(netutil.LimitListener(listener, maxConnections), "", "") }()
	log.Info("Serving routes", "address", listener.Addr().String())
	select {
	case err := <-ended:
		return fmt.Errorf("serving routes: %w", err)
	case <-ctx.Done():
	}
	close(s.stopped)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("ending the server of routes: %w", err)
	}
	return nil
}
