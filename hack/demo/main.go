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
//	DEMO_LAG_ON=a,b       what they see that late: templates (if not set), pools,
//	                      sandboxes
//	DEMO_ROUNDS=3         updates, with 10 claims per namespace after each
//	DEMO_UPSTREAM=v1.0.3  release of agent-sandbox
//	DEMO_PLATFORM=kruise  show OpenKruise Agents, played by test/fakekruise: the
//	                      first act, with SandboxClaims
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

	"github.com/freshbind/freshbind/test/scenario"
)

func main() { os.Exit(scenario.Main("demo", parseOptions, show)) }

func show(ctx context.Context, o options) (shown bool, err error) {
	play := run
	if o.kruise {
		play = runKruise
	}
	shown, err = play(ctx, o, os.Stdout)
	if left := (*cleanupError)(nil); errors.As(err, &left) {
		// Also after an interrupt people have to know.
		fmt.Fprintln(os.Stderr, "demo:", err)
		return false, nil
	}
	return shown, err
}
