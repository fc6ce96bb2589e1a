package main

import (
	"context"
	"fmt"

	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/warmpool"
)

// agentSandbox is agent-sandbox, and how storms are made on it.
type agentSandbox struct {
	*warmpool.AgentSandbox
	// floods are where those of each storm go, by its seed.
	floods map[uint64]*scenario.Namespace
}

func (*agentSandbox) strategies() [pools]string {
	return [pools]string{scenario.Recreate, scenario.OnReplenish, warmpool.RollingUpdate}
}

func (a *agentSandbox) begin(ctx context.Context, w *world) error { return a.Begin(ctx, w.World) }

// sandboxTenant is the hostile tenant in one of its namespaces, with agent-sandbox.
type sandboxTenant struct {
	*tenant
	warmpool.SandboxPool
	// spare is a pool without members, of the same template.
	spare scenario.Pool
	// flood is where nothing is enforced.
	flood *scenario.Namespace
}

func (*agentSandbox) attacks() []attack {
	return []attack{
		attackDisguise, attackDisguisedBirth, attackTwoClaims, attackTwoClaimsBirth, attackByHand, attackFlood,
		attackPodAgain, attackImage, attackDebug, attackPlant, attackReuse, attackReuseInTwo,
	}
}

func (a *agentSandbox) newAttackFuncs(ctx context.Context, w *world, storm options, o warmpool.PoolOptions, of *tenant) (map[attack]attackFunc, error) {
	p, err := a.CreatePool(ctx, o)
	if err != nil {
		return nil, err
	}
	t := &sandboxTenant{tenant: of, SandboxPool: p, spare: p.Pool}
	of.pool = p
	t.spare.Name, t.spare.Replicas = "spare", 0
	if err := p.Create(ctx, a.WarmPool(o, t.spare)); err != nil {
		return nil, err
	}
	if t.flood, err = a.floodOf(ctx, w, storm); err != nil {
		return nil, err
	}
	return t.attackFuncs(), nil
}

func (t *sandboxTenant) attackFuncs() map[attack]attackFunc {
	return map[attack]attackFunc{
		attackDisguise:       t.disguise,
		attackDisguisedBirth: t.disguisedBirth,
		attackTwoClaims:      t.twoClaims,
		attackTwoClaimsBirth: t.twoClaimsBirth,
		attackByHand:         t.byHand,
		attackFlood:          t.floods,
		attackPodAgain:       t.podAgain,
		attackImage:          t.image,
		attackDebug:          t.debug,
		attackPlant:          t.plant,
		attackReuse:          t.reuse,
		attackReuseInTwo:     t.reuseInTwo,
	}
}

// floodOf is where the floods of a storm go.
func (a *agentSandbox) floodOf(ctx context.Context, w *world, storm options) (*scenario.Namespace, error) {
	if flood := a.floods[storm.seed]; flood != nil {
		return flood, nil
	}
	flood, err := a.newFlood(ctx, w, fmt.Sprintf("storm-%d-flood", storm.seed))
	if a.floods == nil {
		a.floods = map[uint64]*scenario.Namespace{}
	}
	a.floods[storm.seed] = flood
	return flood, err
}
