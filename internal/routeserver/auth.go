package routeserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// minToken keeps tokens from being guessed.
	minToken = 16
	// maxTokenFile bounds the file in bytes.
	maxTokenFile = 64 << 10
	// tokensEvery is how often the file is read again.
	tokensEvery = 10 * time.Second
)

// Tokens are the bearer tokens of a file, one a line. Several let a token be
// replaced without a gap.
type Tokens struct {
	file string
	// sums are digests: comparing them says nothing about the tokens.
	sums atomic.Pointer[[][sha256.Size]byte]
}

// ReadTokens reads the file.
func ReadTokens(file string) (*Tokens, error) {
	t := &Tokens{file: file}
	return t, t.read()
}

func (t *Tokens) read() error {
	info, err := os.Stat(t.file)
	if err != nil {
		return fmt.Errorf("reading tokens: %w", err)
	}
	if info.Size() > maxTokenFile {
		return fmt.Errorf("reading tokens: %s has %d bytes: use %d at most", t.file, info.Size(), maxTokenFile)
	}
	content, err := os.ReadFile(t.file)
	if err != nil {
		return fmt.Errorf("reading tokens: %w", err)
	}
	var tokens []string
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		token := bytes.TrimSpace(lines.Bytes())
		if len(token) == 0 {
			continue
		}
		if len(token) < minToken {
			return fmt.Errorf("reading tokens: %s has a token of %d characters: use %d at least", t.file, len(token), minToken)
		}
		tokens = append(tokens, string(token))
	}
	if len(tokens) == 0 {
		return fmt.Errorf("reading tokens: %s has none: write one a line", t.file)
	}
	t.set(tokens)
	return nil
}

func (t *Tokens) set(tokens []string) {
	sums := make([][sha256.Size]byte, len(tokens))
	for i, token := range tokens {
		sums[i] = sha256.Sum256([]byte(token))
	}
	t.sums.Store(&sums)
}

// follow reads the file again and again. What cannot be used changes nothing.
func (t *Tokens) follow(ctx context.Context, c clock.WithTicker) {
	log := logf.FromContext(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.After(tokensEvery):
		}
		if err := t.read(); err != nil {
			log.Error(err, "Still accepting the tokens from before")
		}
	}
}

func (t *Tokens) accept(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && slices.Contains(*t.sums.Load(), sha256.Sum256([]byte(token)))
}

// Clients are whose certificates are accepted. The server has verified them.
type Clients struct {
	// Names are common names or DNS names; any when empty.
	Names []string
}

func (c *Clients) accept(r *http.Request) bool {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}
	return len(c.Names) == 0 || slices.ContainsFunc(c.Names, func(name string) bool { return named(r.TLS.PeerCertificates[0], name) })
}

func named(cert *x509.Certificate, name string) bool {
	return cert.Subject.CommonName == name || slices.Contains(cert.DNSNames, name)
}

// errNoAuth says that a server would answer anybody.
var errNoAuth = errors.New("neither tokens nor client certificates are asked for")

// authenticated lets nobody in without a token or a certificate that is accepted.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.options.Clients != nil && s.options.Clients.accept(r) || s.options.Tokens != nil && s.options.Tokens.accept(r) {
			next.ServeHTTP(w, r)
			return
		}
		s.metrics.unauthorized.Inc()
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a bearer token or a client certificate is required", http.StatusUnauthorized)
	})
}
