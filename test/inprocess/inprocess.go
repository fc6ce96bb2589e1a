// Package inprocess runs the program's servers inside of a test.
package inprocess

import (
	"context"
	"net"
	"testing"

	"github.com/freshbind/freshbind/test/controlplane"
)

// Run runs a server until the test is over. The test fails when it ends with an
// error.
func Run(t testing.TB, name string, run func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("%s ended: %v", name, err)
		}
	})
}

// FreeAddress is one on which nobody listens, and that nobody else is given before
// the test is over.
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, release, err := controlplane.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return net.JoinHostPort("127.0.0.1", port)
}
