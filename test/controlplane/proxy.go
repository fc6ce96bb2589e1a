package controlplane

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Proxy stands in front of an API server and delivers watch events late, which
// is what an informer's cache is when its API server is slow, far or restarted.
// Late events keep their order. A LIST, and the objects that a watch begins with
// (sendInitialEvents), are no events: they pass at once unless SetLists says
// otherwise. A GET always does.
type Proxy struct {
	cluster  *Cluster
	server   int
	listener net.Listener
	http     *http.Server
	pace     *pace
	forward  *httputil.ReverseProxy

	mu sync.Mutex
	// users are those whom Config was called for, by the token it gave them.
	users map[string]*user
	// held says whether a request has to wait; changed is closed, and replaced,
	// when another function does.
	held    func(*http.Request) bool
	changed chan struct{}
	// spoil says what becomes of answers; nil is nothing.
	spoil func(*http.Request) Spoil
	// replay gives answers again; nil gives none.
	replay *replay
}

// user is somebody who talks through the proxy, and how the proxy talks for them.
type user struct {
	config    *rest.Config
	transport func() (http.RoundTripper, error)
}

// userKey is where the proxy's handler leaves the user for its transport.
type userKey struct{}

// NewProxy starts a proxy in front of API server i. It ends with the cluster.
func (c *Cluster) NewProxy(server int) (*Proxy, error) {
	if server < 0 || server >= len(c.servers) {
		return nil, fmt.Errorf("start proxy: there is no API server %d, only 0 to %d", server, len(c.servers)-1)
	}
	pair, err := c.authority.serving()
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	cert, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	target, err := url.Parse(c.servers[server].url())
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	p := &Proxy{
		cluster: c, server: server, listener: listener,
		pace: newPace(clock.RealClock{}), users: map[string]*user{}, changed: make(chan struct{}),
	}
	p.forward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { rewrite(r, target) },
		Transport:      roundTripper(forward),
		ModifyResponse: p.paceResponse,
		FlushInterval:  -1,
		ErrorHandler:   badGateway,
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	p.http = &http.Server{
		Handler:           p,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	c.goRun(func(ctx context.Context) {
		stop := context.AfterFunc(ctx, func() { _ = p.http.Close() })
		defer stop()
		// It always ends with an error, ErrServerClosed after Close.
		_ = p.http.ServeTLS(listener, "", "")
	})
	return p, nil
}

// Config is user's configuration for talking through the proxy. The API server
// sees the same user: the proxy presents their own credentials.
func (p *Proxy) Config(owner *rest.Config) *rest.Config {
	token := rand.Text()
	backend := p.cluster.At(owner, p.server)
	p.mu.Lock()
	p.users[token] = &user{
		config:    backend,
		transport: sync.OnceValues(func() (http.RoundTripper, error) { return rest.TransportFor(backend) }),
	}
	p.mu.Unlock()

	front := rest.AnonymousClientConfig(owner)
	front.Host = "https://" + p.listener.Addr().String()
	front.TLSClientConfig = rest.TLSClientConfig{CAData: p.cluster.authority.pem}
	front.BearerToken = token
	return front
}

// SetDelay makes events of a resource arrive d late, on open watches as on new
// ones. An event that waits already is measured with the new delay, too: 0
// delivers all that wait, in order.
func (p *Proxy) SetDelay(group, resource string, d time.Duration) {
	p.pace.change(schema.GroupResource{Group: group, Resource: resource}, func(r *rule) { r.delay = max(d, 0) })
}

// Hold keeps back all events of a resource until Release.
func (p *Proxy) Hold(group, resource string) {
	p.pace.change(schema.GroupResource{Group: group, Resource: resource}, func(r *rule) { r.held = true })
}

// Release delivers what Hold kept back, in order. A delay stays in force.
func (p *Proxy) Release(group, resource string) {
	p.pace.change(schema.GroupResource{Group: group, Resource: resource}, func(r *rule) { r.held = false })
}

// HoldRequests keeps requests from the API server for which held is true. It is
// called once for each request, possibly for several at once, and again for those
// that wait when another function takes its place; nil lets all pass.
func (p *Proxy) HoldRequests(held func(*http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
	close(p.changed)
	p.changed = make(chan struct{})
}

// pass returns when a request may go on, or its client has gone.
func (p *Proxy) pass(r *http.Request) {
	for {
		p.mu.Lock()
		held, changed := p.held, p.changed
		p.mu.Unlock()
		if held == nil || !held(r) {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// Close ends the proxy and every request that goes through it.
func (p *Proxy) Close() error { return p.http.Close() }

// ServeHTTP forwards a request of a user known by token, and nobody else's.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	p.mu.Lock()
	known := p.users[token]
	p.mu.Unlock()
	if known == nil {
		http.Error(w, "unknown token: make a configuration with Proxy.Config", http.StatusUnauthorized)
		return
	}
	p.pass(r)
	r, answered := p.spoiled(w, r)
	if answered || p.replayed(w, r) {
		return
	}
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, known)))
}

// rewrite aims a request at the API server, which knows the user by other means.
func rewrite(r *httputil.ProxyRequest, target *url.URL) {
	r.SetURL(target)
	r.Out.Header.Del("Authorization")
	if _, ok := watched(r.In.URL); ok {
		// Frames have to be recognised: no compression, no CBOR.
		r.Out.Header.Set("Accept-Encoding", "identity")
		r.Out.Header["Accept"] = withoutCBOR(r.Out.Header.Values("Accept"))
	}
}

// forward sends a request with the credentials of its user.
func forward(r *http.Request) (*http.Response, error) {
	known, ok := r.Context().Value(userKey{}).(*user)
	if !ok {
		return nil, errors.New("forward request: no user")
	}
	transport, err := known.transport()
	if err != nil {
		return nil, fmt.Errorf("make transport for user: %w", err)
	}
	return transport.RoundTrip(r)
}

// paceResponse puts the pace between a watch or a list and its reader.
func (p *Proxy) paceResponse(response *http.Response) error {
	halve(response)
	if err := p.keep(response); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return nil
	}
	list, isList := listed(response.Request)
	resource, isWatch := watched(response.Request.URL)
	initial := isWatch && initialEvents(response.Request.URL.Query())
	if isList {
		resource = list
	}
	if rule, _ := p.pace.get(resource); (isList || initial) && rule.listsFor(response.Request) == ListsRefused {
		return refuse(response)
	}
	switch {
	case isList:
		response.Body = newListBody(response, p.pace, resource)
	case isWatch:
		framing, err := framingOf(response.Header.Get("Content-Type"))
		if err != nil {
			return fmt.Errorf("watch %s: %w", resource, err)
		}
		response.Body = newStream(response, framing, p.pace, resource, initial)
	}
	return nil
}

func badGateway(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, "proxy: "+err.Error(), http.StatusBadGateway)
}

// roundTripper makes a function an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
