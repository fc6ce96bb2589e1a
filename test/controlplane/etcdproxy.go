package controlplane

import (
	"bytes"
	"context"
	"encoding/binary"
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
	"k8s.io/utils/clock"
)

// EtcdProxy stands between one API server and etcd, and delivers what etcd's
// watches say late: the API server's watch cache is old then, while its reads
// and writes of etcd are not (kubernetes#59848). A watch stream is held as a
// whole: progress notifications, which concern all watches of a stream, must not
// overtake events. An API server has a connection, and so a stream, of its own
// for each resource (k8s.io/apiserver, storagebackend/factory/etcd3.go).
type EtcdProxy struct {
	listener net.Listener
	http     *http.Server
	pace     *pace
}

const (
	// watchPath is the only method of etcd's service Watch.
	watchPath = "/etcdserverpb.Watch/Watch"
	// keyRoot is what the keys of all objects begin with (--etcd-prefix).
	keyRoot = "/registry/"
)

// newEtcdProxy serves gRPC, which is HTTP/2, without TLS as etcd does here.
func newEtcdProxy(etcd string) (*EtcdProxy, error) {
	target, err := url.Parse(etcd)
	if err != nil {
		return nil, fmt.Errorf("start proxy of etcd: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, fmt.Errorf("start proxy of etcd: %w", err)
	}
	var plain http.Protocols
	plain.SetUnencryptedHTTP2(true)
	p := &EtcdProxy{listener: listener, pace: newPace(clock.RealClock{})}
	// No FlushInterval: what has no length is flushed at once in any case, and what has one,
	// here none, is an error that ends with its header. A flush makes that two frames, and
	// its status is lost.
	forward := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      &http.Transport{Protocols: &plain},
		ModifyResponse: p.paceWatch,
		ErrorHandler:   badGateway,
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	p.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == watchPath {
				asked := &askedWatch{ReadCloser: r.Body}
				r = r.WithContext(context.WithValue(r.Context(), askedKey{}, asked))
				r.Body = asked
			}
			forward.ServeHTTP(w, r)
		}),
		Protocols:         &plain,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	return p, nil
}

// run serves until ctx ends.
func (p *EtcdProxy) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = p.http.Close() })
	defer stop()
	// It always ends with an error, ErrServerClosed after Close.
	_ = p.http.Serve(p.listener)
}

func (p *EtcdProxy) url() string { return "http://" + p.listener.Addr().String() }

// Hold keeps from the API server what happens to a resource, on open watches as
// on new ones, until Release.
func (p *EtcdProxy) Hold(group, resource string) {
	p.pace.change(schema.GroupResource{Group: group, Resource: resource}, func(r *rule) { r.held = true })
}

// Release delivers what Hold kept back, in order.
func (p *EtcdProxy) Release(group, resource string) {
	p.pace.change(schema.GroupResource{Group: group, Resource: resource}, func(r *rule) { r.held = false })
}

// paceWatch puts the pace between a watch stream and the API server. etcd
// answers only after it knows what to watch.
func (p *EtcdProxy) paceWatch(response *http.Response) error {
	asked, ok := response.Request.Context().Value(askedKey{}).(*askedWatch)
	if !ok || response.StatusCode != http.StatusOK {
		return nil
	}
	if resource, ok := asked.resource(); ok {
		response.Body = newStream(response, lengthDelimited(grpcFlags), p.pace, resource, false)
	}
	return nil
}

// askedKey is where the handler leaves what a request asks for.
type askedKey struct{}

// askedWatch is the body of a request to watch; it keeps its beginning.
type askedWatch struct {
	io.ReadCloser

	mu   sync.Mutex
	seen []byte
}

func (a *askedWatch) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := firstMessage(a.seen); !ok {
		a.seen = append(a.seen, p[:n]...)
	}
	return n, err
}

// resource is what the first message of the request wants watched.
func (a *askedWatch) resource() (schema.GroupResource, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	message, ok := firstMessage(a.seen)
	if !ok {
		return schema.GroupResource{}, false
	}
	return resourceInKey(message)
}

// firstMessage is the first message of a gRPC stream, when all of it is there.
func firstMessage(stream []byte) ([]byte, bool) {
	const head = grpcFlags + 4
	if len(stream) < head {
		return nil, false
	}
	size := int64(binary.BigEndian.Uint32(stream[grpcFlags:]))
	if int64(len(stream)) < head+size {
		return nil, false
	}
	return stream[head : head+size], true
}

// resourceInKey is the resource of the first key in a message: keys are
// /registry/RESOURCE/… for what is built in, /registry/GROUP/RESOURCE/… for what
// a CRD defines (and for a few that are built in).
func resourceInKey(message []byte) (schema.GroupResource, bool) {
	_, key, ok := bytes.Cut(message, []byte(keyRoot))
	if !ok {
		return schema.GroupResource{}, false
	}
	parts := strings.SplitN(string(key), "/", 3)
	switch {
	case len(parts) == 3 && strings.Contains(parts[0], "."):
		return schema.GroupResource{Group: parts[0], Resource: parts[1]}, true
	case len(parts) >= 2:
		return schema.GroupResource{Resource: parts[0]}, true
	}
	return schema.GroupResource{}, false
}
