// Package gatewaytest tests a live gateway from outside: by what it is told of
// sandboxes, and by where a request then arrives.
//
// Nothing real is touched. The sandboxes are invented, in a namespace of their
// own, and have the address of a canary: a server of the test's, which sees the
// requests that reach it.
package gatewaytest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Namespace is that of the invented sandboxes.
const Namespace = "freshbind-conformance"

// Gateway is the gateway under test: one replica of it.
type Gateway struct {
	// RefreshURL takes what peers push; empty when the gateway has no such thing.
	RefreshURL string
	// ProbeURL leads to a sandbox through the gateway. {id}, {namespace}, {name}
	// and {port} stand for a sandbox's; in ProbeHeader, too.
	ProbeURL    string
	ProbeHeader http.Header
	// Peer pushes with the credentials of a peer, Anyone without any.
	Peer, Anyone *http.Client
	// Timeout is how long a request may take to arrive.
	Timeout time.Duration
}

// Message is what peers push, as OpenKruise has it.
type Message struct {
	IP              string `json:"ip"`
	ID              string `json:"id"`
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	UID             string `json:"uid"`
	Owner           string `json:"owner"`
	State           string `json:"state"`
	ResourceVersion string `json:"resourceVersion"`
}

// push sends a message and returns the status of the answer.
func (g *Gateway) push(ctx context.Context, client *http.Client, body []byte) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.RefreshURL, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("push to %s: %w", g.RefreshURL, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("push to %s: %w", g.RefreshURL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, nil
}

// probe sends a request for a sandbox and reports whether it came to the canary.
// Header is added to it.
func (g *Gateway) probe(ctx context.Context, c *Canary, m Message, header http.Header) (bool, error) {
	fill := strings.NewReplacer("{id}", m.ID, "{namespace}", m.Namespace, "{name}", m.Name, "{port}", strconv.Itoa(c.Port()))
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fill.Replace(g.ProbeURL), nil)
	if err != nil {
		return false, fmt.Errorf("probe %s: %w", m.ID, err)
	}
	for _, h := range []http.Header{g.ProbeHeader, header} {
		for name, values := range h {
			for _, v := range values {
				req.Header.Add(name, fill.Replace(v))
			}
		}
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	token := rand.Text()
	req.Header.Set(tokenHeader, token)
	resp, err := g.Anyone.Do(req)
	if err != nil {
		// A gateway that waits for an address where nothing is does not answer in time.
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			return c.saw(token), nil
		}
		return false, fmt.Errorf("probe %s: %w", m.ID, err)
	}
	_ = resp.Body.Close()
	return c.saw(token), nil
}

const tokenHeader = "X-Freshbind-Probe"

// Canary is where the invented sandboxes are said to be.
type Canary struct {
	listener net.Listener
	server   *http.Server
	mu       sync.Mutex
	tokens   map[string]bool
}

// NewCanary listens at an address that the gateway can reach.
func NewCanary(address string) (*Canary, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the gateway's requests: %w", err)
	}
	c := &Canary{listener: listener, tokens: map[string]bool{}}
	c.server = &http.Server{Handler: c, ReadTimeout: time.Minute, WriteTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

// maxTokens bounds what strangers can have the canary remember.
const maxTokens = 10_000

func (c *Canary) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	if token := r.Header.Get(tokenHeader); len(token) < 64 && len(c.tokens) < maxTokens {
		c.tokens[token] = true
	}
	c.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func (c *Canary) saw(token string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens[token]
}

// IP is the canary's.
func (c *Canary) IP() string { return c.listener.Addr().(*net.TCPAddr).IP.String() }

// Port is the canary's.
func (c *Canary) Port() int { return c.listener.Addr().(*net.TCPAddr).Port }

// Close ends the canary.
func (c *Canary) Close() error {
	if err := c.server.Close(); err != nil {
		return fmt.Errorf("close the canary: %w", err)
	}
	return nil
}

func encode(m Message) []byte {
	// A Message has nothing that cannot be encoded.
	body, _ := json.Marshal(m)
	return body
}
