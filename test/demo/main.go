// Command demo shows the main job on real programs: the unmodified
// agent-sandbox controllers, two namespaces with the same pool and the same
// claims, one of them guarded by Freshbind, and a template that changes while
// claims arrive. Then the same update under RollingUpdate, in a third
// namespace, with a plot of what the pool had to offer meanwhile. Everything is
// judged from the watch history.
//
// Environment:
//
//	DEMO_LAG=1.5s         how late the controllers see templates; 0 for not at all
//	DEMO_ROUNDS=4         updates, with 10 claims per namespace after each
//	DEMO_UPSTREAM=v1.0.3  release of agent-sandbox
//	DEMO_KEEP=1           keep everything running until Ctrl-C
//	KUBE_CONTEXT=name     use this context's cluster and its own agent-sandbox;
//	                      what is created there is removed again
//	DEMO_IMAGES=a,b       images that the template has in turn; with KUBE_CONTEXT
//	                      the cluster has to be able to run them
//	DEMO_WEBHOOK_HOST=ip  with KUBE_CONTEXT: this machine's address, as the
//	                      cluster's API server reaches it
//
// It exits with 0 only when the unguarded namespace had stale binds, the
// guarded one had none, all guarded claims became ready, and the rolling pool
// was updated with never more than max-unavailable of its members missing on
// that account.
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

func main() { os.Exit(demo()) }

func demo() int {
	o, err := parseOptions(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return exitUsage
	}
	// What client libraries log is not for those who watch.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends a cleanup that takes too long.
	context.AfterFunc(ctx, stop)
	shown, err := run(ctx, o, os.Stdout)
	var left *cleanupError
	switch {
	case errors.As(err, &left):
		fmt.Fprintln(os.Stderr, "demo:", err)
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "demo: interrupted; what was started is stopped and removed")
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	if err != nil || !shown {
		return exitFailed
	}
	return 0
}
