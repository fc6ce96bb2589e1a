package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// bursts are those of a probe, unless it goes on for longer. One should do; a claim of
	// the first that is not served out of the pool leaves a member to the second.
	bursts = 3
	// probeWithin bounds one step of a probe: the pool at rest, a burst ready.
	probeWithin = 5 * time.Minute
)

// Probe is what came of draining a pool.
type Probe struct {
	// Members stood ready and shown when it began.
	Members int
	// Claims were made, the Cold ones of them got a sandbox that was none of
	// the pool's.
	Claims, Cold int
	// Ghosts are members that still stand there ready and shown and that no
	// claim was given.
	Ghosts []string
}

// Drained is a pool that a probe drains.
type Drained struct {
	Replicas int
	// Duration is for how long bursts go on, where a member that is refused because nobody
	// could decide is given to nobody until Freshbind offers it again.
	Duration time.Duration
	// Rest waits until all members are there, ready and shown; Members are those
	// that there are.
	Rest    func(ctx context.Context, within time.Duration) ([]Member, error)
	Members func(ctx context.Context) ([]Member, error)
	// Take has claims of these names served, all at once, and counts those among
	// them that got no member.
	Take func(ctx context.Context, names []string) (cold int, err error)
}

// Ghosts drains a pool of agent-sandbox's.
func (n *Namespace) Ghosts(ctx context.Context, p Pool, prefix string) (Probe, error) {
	return Drained{
		Replicas: p.Replicas,
		Rest: func(ctx context.Context, within time.Duration) ([]Member, error) {
			return n.WaitPool(ctx, p, "", within)
		},
		Members: func(ctx context.Context) ([]Member, error) { return n.Members(ctx, p.Name) },
		Take:    func(ctx context.Context, names []string) (int, error) { return n.take(ctx, p, names) },
	}.Ghosts(ctx, prefix)
}

// Ghosts drains a pool and finds the members that nobody is given although they
// are ready and shown. The template must be at rest. The claims, named prefix1
// and so on, come in bursts of the pool's size: one after the other would not
// do, because the pool replenishes itself meanwhile, and releases of agent-sandbox
// from v0.5 on prefer the node with most queued members, so that a member on another
// node may be passed over for as long as there is a choice.
func (d Drained) Ghosts(ctx context.Context, prefix string) (Probe, error) {
	waiting, err := d.Rest(ctx, probeWithin)
	if err != nil {
		return Probe{}, fmt.Errorf("probe for ghosts: %w", err)
	}
	probe := Probe{Members: len(waiting)}
	for began, made := time.Now(), 0; made < bursts || time.Since(began) < d.Duration; made++ {
		burst := Names(prefix, (made+1)*d.Replicas)[made*d.Replicas:]
		probe.Claims += len(burst)
		cold, err := d.Take(ctx, burst)
		probe.Cold += cold
		if err != nil {
			return probe, fmt.Errorf("probe for ghosts: %w", err)
		}
		stored, err := d.Members(ctx)
		if err != nil {
			return probe, fmt.Errorf("probe for ghosts: %w", err)
		}
		if waiting = stillThere(waiting, stored); len(waiting) == 0 {
			return probe, nil
		}
	}
	for _, m := range waiting {
		probe.Ghosts = append(probe.Ghosts, m.Name)
	}
	return probe, nil
}

// waitSandboxOf is SandboxOf when the claim names one: a claim controller that does not
// see the sandbox yet may withdraw what the claim's status has said already (v0.4.6). Any
// other error is one at once.
func (n *Namespace) waitSandboxOf(ctx context.Context, claim string) (sandbox *unstructured.Unstructured, err error) {
	if late := Poll(ctx, probeWithin, func(ctx context.Context) (bool, error) {
		sandbox, err = n.SandboxOf(ctx, claim)
		return !errors.Is(err, errNoSandbox), nil
	}); late != nil {
		return nil, errors.Join(err, late)
	}
	return sandbox, err
}

// take makes claims at once, waits until they are ready, and counts the cold
// starts among them: those carry their claim's own name.
func (n *Namespace) take(ctx context.Context, p Pool, names []string) (cold int, err error) {
	if err := n.CreateClaims(ctx, p, names...); err != nil {
		return 0, err
	}
	if err := n.WaitClaims(ctx, probeWithin, names...); err != nil {
		return 0, err
	}
	for _, name := range names {
		sandbox, err := n.waitSandboxOf(ctx, name)
		if err != nil {
			return cold, err
		}
		if sandbox.GetName() == name {
			cold++
		}
	}
	return cold, nil
}

// stillThere keeps those of the waiting members that are stored, unclaimed and
// takeable. One that is hidden or being deleted is passed over for a reason.
func stillThere(waiting, stored []Member) []Member {
	now := map[types.UID]Member{}
	for _, m := range stored {
		now[m.UID] = m
	}
	var still []Member
	for _, m := range waiting {
		if found, ok := now[m.UID]; ok && found.takeable() {
			still = append(still, m)
		}
	}
	return still
}
