package scenario

import (
	"context"
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

// Main runs a program that people start, and returns its exit code: 0 when it
// was good, 2 when its options, read from the environment, cannot be used, and 1
// otherwise. The first interrupt ends its context, so that it can clean up.
func Main[O any](name string, parse func(getenv func(string) string) (O, error), play func(context.Context, O) (good bool, err error)) int {
	o, err := parse(os.Getenv)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return exitUsage
	}
	// What client libraries log is not for those who watch.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends a cleanup that takes too long.
	context.AfterFunc(ctx, stop)
	good, err := play(ctx, o)
	switch {
	case err != nil && ctx.Err() != nil:
		// The terminal's signal ends builds as well, so err may say anything.
		fmt.Fprintf(os.Stderr, "%s: interrupted; what was started is stopped and removed\n", name)
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	if err != nil || !good {
		return exitFailed
	}
	return 0
}
