package webhooks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// connections is a listener of connections within this process, whose deadlines go by the
// clock of the test.
type connections chan net.Conn

func (c connections) Accept() (net.Conn, error) {
	conn, ok := <-c
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (connections) Close() error   { return nil }
func (connections) Addr() net.Addr { return &net.TCPAddr{} }

// A client that sends its body byte by byte, or not at all, takes no room from others for
// longer than anybody waits for an answer.
func TestABodyThatDoesNotComeIsNotWaitedFor(t *testing.T) {
	cases := map[string]struct {
		size int
		// sent is how much of the body comes at once.
		sent int
		want int
	}{
		"a large one that stops":             {maxBody, 2 * headBytes, http.StatusRequestTimeout},
		"a large one that stops at its head": {maxBody, 10, http.StatusRequestTimeout},
		"a small one that stops":             {1000, 10, http.StatusRequestTimeout},
		"a large one that comes":             {largeBody + 1, largeBody + 1, http.StatusOK},
		"a small one that comes":             {1000, 1000, http.StatusOK},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := NewEntrance(prometheus.NewRegistry(), nil)
				served := e.Before(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					// Whoever takes long to answer is not cut off for what was read long ago.
					select {
					case <-r.Context().Done():
						t.Errorf("cut off: %v", context.Cause(r.Context()))
					case <-time.After(2 * readWithin):
					}
				}))
				listener := make(connections, 1)
				server := &http.Server{Handler: served}
				ended := make(chan error, 1)
				go func() { ended <- server.Serve(listener) }()
				client, conn := net.Pipe()
				listener <- conn
				go func() {
					_, _ = fmt.Fprintf(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", tc.size)
					_, _ = client.Write(review(t, "ns", maxBody)[:tc.sent])
				}()
				resp, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if resp.StatusCode != tc.want {
					t.Errorf("answered %s, want %d", resp.Status, tc.want)
				}
				_ = client.Close()
				close(listener)
				if err := server.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				if err := <-ended; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				slow := testutil.ToFloat64(e.turnedAway.WithLabelValues(turnedAwaySlow))
				if e.total != 0 || len(e.held) != 0 || (slow == 1) != (tc.want == http.StatusRequestTimeout) {
					t.Errorf("%d bytes are held, %v slow", e.total, slow)
				}
			})
		})
	}
}
