package routes

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// nobody is what an address says that no sandbox has.
const nobody = "nobody"

// backends answer on loopback addresses, all on one port, each with the identity
// of the sandbox that has the address.
type backends struct {
	port int

	mu   sync.Mutex
	here map[string]string
}

func newBackends(t *testing.T, addresses []string) *backends {
	t.Helper()
	b := &backends{here: map[string]string{}}
	for _, address := range addresses {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(b.port)))
		if err != nil {
			t.Skipf("SKIPPED: no backend can listen on %s, which has to be a loopback address of this machine: %v", address, err)
		}
		b.port = listener.Addr().(*net.TCPAddr).Port
		server := &http.Server{
			Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, b.at(address)) }),
			ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
	}
	return b
}

func (b *backends) at(address string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if name := b.here[address]; name != "" {
		return name
	}
	return nobody
}

func (b *backends) set(address, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.here[address] = name
}
