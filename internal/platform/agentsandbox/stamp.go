package agentsandbox

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

// SandboxRevision returns the revision that a Sandbox, about to be created, is
// built from, by its own content.
func (p *Platform) SandboxRevision(ctx context.Context, sandbox *unstructured.Unstructured) (platform.Stamp, error) {
	f, err := p.Snapshot(ctx, asIfCreated(sandbox))
	if err != nil {
		return platform.Stamp{}, fmt.Errorf("finding the revision of sandbox %s: %w", sandbox.GetName(), err)
	}
	return platform.Stamp{Hash: freshness.RevisionOf(f.Snapshot), Enforcement: f.Enforcement}, nil
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
	return platform.Stamp{
		Hash: freshness.PodRevisionOf(f.Snapshot), Enforcement: f.Enforcement,
		Sendable: f.Member.Controller.Kind == freshness.OwnedByPool && !NamesScheduler(sandbox),
	}, nil
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
