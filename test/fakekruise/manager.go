package fakekruise

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// StartControllers starts all controllers, which share their caches, until ctx ends.
func StartControllers(ctx context.Context, cfg *rest.Config, options Options) error {
	v, err := newView(cfg, options, Sets, Sandboxes, Claims, Templates, pods)
	if err != nil {
		return fmt.Errorf("start controllers of OpenKruise Agents: %w", err)
	}
	sets := &setController{view: v, queue: newQueue(), made: map[types.UID]map[string]bool{}, gone: map[types.UID]map[string]bool{}}
	boxes := &boxController{view: v, queue: newQueue(), expected: newSeen()}
	claims := &claimController{taker: taker{view: v, seen: newSeen()}, queue: newQueue(), expected: newSeen()}
	err = errors.Join(
		v.changed(Sets, sets.setChanged), v.changed(Sandboxes, sets.boxChanged),
		v.changed(Sandboxes, boxes.changed), v.changed(pods, boxes.changed),
		v.changed(Claims, func(_, claim *unstructured.Unstructured) { claims.queue.Add(keyOf(claim)) }),
	)
	if err == nil {
		err = v.start(ctx)
	}
	if err != nil {
		return fmt.Errorf("start controllers of OpenKruise Agents: %w", err)
	}
	sets.queue.work(ctx, 4, sets.reconcile)
	boxes.queue.work(ctx, 16, boxes.reconcile)
	claims.queue.work(ctx, 16, claims.reconcile)
	return nil
}
