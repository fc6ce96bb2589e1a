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
	"fmt"
	"os"

	"github.com/freshbind/freshbind/test/scenario"
)

func main() { os.Exit(scenario.Main("upstream-test", parseOptions, play)) }

func play(ctx context.Context, o options) (good bool, err error) {
	results, err := run(ctx, o, os.Stdout)
	good = err == nil
	for _, r := range results {
		fmt.Println(r.line())
		good = good && r.good()
	}
	return good, err
}
