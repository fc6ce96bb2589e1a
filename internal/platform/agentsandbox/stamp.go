package agentsandbox

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

// SandboxRevision returns the revision that a Sandbox, about to be created, is
// built from, by its own content.
func (p *Platform) SandboxRevision(ctx context.Context, sandbox *unstructured.Unstructured) (platform.Stamp, error) {
	f, err := p.Snapshot(ctx, asIfCreated(sandbox))
	if err != nil {
		return platform.Stamp{}, fmt.Errorf("finding the revision of sandbox %s: %w", sandbox.GetName(), err)
	}
	hash, err := p.attribute(ctx, sandbox.GetNamespace(), f, freshness.RevisionWithin)
	return platform.Stamp{Hash: hash, Enforcement: f.Enforcement}, err
}

// PodRevision returns the revision that a Pod is built from, by its own
// content; none when neither a Sandbox nor a pool has it.
func (p *Platform) PodRevision(ctx context.Context, pod *unstructured.Unstructured) (platform.Stamp, error) {
	if controllerOf(pod).Kind == freshness.OwnedByPool {
		return p.barePodRevision(ctx, pod)
	}
	var name string
	for _, ref := range pod.GetOwnerReferences() {
		if IsSandbox(groupKind(ref.APIVersion, ref.Kind)) {
			name = ref.Name
		}
	}
	if name == "" {
		return platform.Stamp{}, nil
	}
	sandbox, err := p.Get(ctx, Sandboxes, pod.GetNamespace(), name)
	if err != nil {
		return platform.Stamp{}, err
	}
	own, err := podOf(pod)
	if err != nil {
		return platform.Stamp{}, err
	}
	if sandbox == nil {
		return platform.Stamp{Hash: own.Content.Hash()}, nil
	}
	f, err := p.Snapshot(ctx, asIfCreated(sandbox))
	if err != nil {
		return platform.Stamp{}, fmt.Errorf("finding the revision of pod %s: %w", pod.GetName(), err)
	}
	f.Pod = own
	if f.PodInjected, err = p.podInjections(sandbox, pod, f.Injected); err != nil {
		return platform.Stamp{}, err
	}
	hash, err := p.attribute(ctx, pod.GetNamespace(), f, freshness.PodRevisionWithin)
	return platform.Stamp{
		Hash: hash, Enforcement: f.Enforcement,
		Sendable: f.Member.Controller.Kind == freshness.OwnedByPool && !NamesScheduler(sandbox),
	}, err
}

// attribute names a revision when it is the namespace's turn.
func (p *Platform) attribute(ctx context.Context, namespace string, f platform.Facts, find func(freshness.Snapshot, *revision.Budget) (string, error)) (string, error) {
	done, err := p.Turns.Take(ctx, namespace)
	if err != nil {
		return "", err
	}
	defer done()
	return find(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
}

// asIfCreated describes a Sandbox by how it came to be: for its claim, or for
// its pool.
func asIfCreated(sandbox *unstructured.Unstructured) platform.Write {
	w := platform.Write{Operation: freshness.Birth, New: sandbox}
	if owner := controllerOf(sandbox); owner.Kind == freshness.OwnedByClaim {
		w.Operation, w.Claim = freshness.ColdStart, owner
	}
	return w
}
