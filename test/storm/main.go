// Command storm lets everything happen at once and shows that no claim gets a
// wrong sandbox: three pools under three strategies, templates that change all
// the while, caches that are late, pods and idle members that are deleted,
// claims in bursts, and Freshbind killed and started again. Beside that a hostile
// tenant tries, in namespaces that enforce in four ways, whatever could give a claim
// a stale or a used sandbox. Everything is judged from the watch history and from
// the API server's audit log.
//
// Environment:
//
//	STORM_SEED=n           decides everything that the storm does; random by default
//	STORM_CLAIMS=300       claims that stay; some more are made and deleted again
//	STORM_UPSTREAM=v1.0.3  release of agent-sandbox, or kruise: OpenKruise Agents, by its double
//
// It exits with 0 only when no invariant was broken, every claim became ready,
// and there was a storm: at least 20 writes refused, and binds judged that nothing could race with.
// reads/bind are all live reads of Freshbind's, those for stamps and for what
// follows from a refusal among them, per write that it judged: no metric says
// what a read was for.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/freshbind/freshbind/test/scenario"
)

func main() { os.Exit(scenario.Main("storm", parseOptions, play)) }

func play(ctx context.Context, o options) (good bool, err error) {
	var r result
	var faults []string
	err = inWorld(ctx, o.platform(), os.Stdout, func(ctx context.Context, w *world) (bool, error) {
		var err error
		if r, err = w.storm(ctx, o, os.Stdout); err != nil {
			return false, err
		}
		faults = append(r.faults(), unproven(r)...)
		return len(faults) == 0, nil
	})
	if err != nil {
		return false, err
	}
	fmt.Print(r.raids(), explain(faults))
	fmt.Println(r.line())
	return len(faults) == 0, nil
}
