package agentsandbox

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// foreignController reads whether the controller that a Sandbox is given has the
// UID of a claim. No claim that is made later can get that UID: the API server
// draws it.
func (p *Platform) foreignController(ctx context.Context, w platform.Write) (platform.Facts, error) {
	sandbox := w.Judged()
	f := platform.Facts{Snapshot: freshness.Snapshot{
		Operation: w.Operation, ClaimRef: w.Claim, Member: freshness.Member{Name: sandbox.GetName(), UID: string(sandbox.GetUID())},
	}}
	gvr, err := p.Resolver.Resource(ctx, Claims)
	if err != nil {
		return platform.Facts{}, fmt.Errorf("finding the served version of %s: %w", Claims, err)
	}
	found, err := p.ByUID.Get(ctx, liveread.Ref{GVR: gvr, Namespace: sandbox.GetNamespace(), Name: w.Claim.UID})
	if liveread.IsAbsent(err) {
		return f, nil
	}
	if err != nil {
		return platform.Facts{}, fmt.Errorf("looking for a claim with the controller's UID: %w", err)
	}
	claim, err := p.Get(ctx, Claims, sandbox.GetNamespace(), found.GetName())
	if claim == nil {
		return f, err
	}
	f.Claim, f.ClaimRef.Name = claimOf(claim), claim.GetName()
	f.Enforcement, err = p.enforcementOf(ctx, claim)
	return f, err
}

// EnforcementFor is what the pool of a claim says of its own enforcement; "" for
// nothing, and when there is no such claim or pool.
func (p *Platform) EnforcementFor(ctx context.Context, namespace, claim string) (string, error) {
	stored, err := p.Get(ctx, Claims, namespace, claim)
	if stored == nil {
		return "", err
	}
	return p.enforcementOf(ctx, stored)
}

func (p *Platform) enforcementOf(ctx context.Context, claim *unstructured.Unstructured) (string, error) {
	name := claimOf(claim).Pool
	if name == "" {
		return "", nil
	}
	pool, err := p.Get(ctx, Pools, claim.GetNamespace(), name)
	if pool == nil {
		return "", err
	}
	return pool.GetAnnotations()[settings.EnforcementKey], nil
}
