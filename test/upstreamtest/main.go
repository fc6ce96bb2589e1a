// Command upstreamtest proves the guard against every release of agent-sandbox
// that can be run: with late template caches and without, a pool under the
// strategy Recreate, template updates in place with a burst of claims right
// after each, and then a probe for members that nobody is given any more.
//
// Environment, to narrow it:
//
//	UPSTREAM_VERSIONS=v1.0.3,v0.5.6  releases; all by default
//	UPSTREAM_LAGS=1.5s,0             how late templates are seen
//	UPSTREAM_ROUNDS=4                updates, with 10 claims after each
//
// It exits with 0 only when nowhere was a stale bind, a claim that did not
// become ready, or a ghost.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(upstreamTest()) }

func upstreamTest() int {
	o, err := parseOptions(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "upstream-test:", err)
		return exitUsage
	}
	// What client libraries log is not for those who watch.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	results, err := run(ctx, o, os.Stdout)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "upstream-test:", err)
	}
	good := err == nil
	for _, r := range results {
		fmt.Println(r.line())
		good = good && r.good()
	}
	if !good {
		return exitFailed
	}
	return 0
}
