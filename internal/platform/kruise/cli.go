package kruise

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

// hashLabel is on what a SandboxSet makes, and on no cold start.
const hashLabel = prefix + "template-hash"

// Commands are Objects for people, who ask about SandboxClaims.
type Commands struct{ Objects }

// Kinds are those of Objects, and SandboxClaims.
func (c Commands) Kinds() platform.Kinds {
	kinds := c.Objects.Kinds()
	kinds.Claim = platform.Kind{GroupKind: schema.GroupKind{Group: Group, Kind: kindClaim}, Resource: Claims.Resource}
	return kinds
}

// Asked returns the SandboxSet that a SandboxClaim wants a member of.
func (Commands) Asked(claim *unstructured.Unstructured) (pool, template string) {
	return poolAsked(claim), ""
}

// Holdings are none: a SandboxClaim does not name what it has.
func (Commands) Holdings(*unstructured.Unstructured) []string { return nil }

// Held selects what may be a SandboxClaim's, by the hint that it leaves there.
func (Commands) Held(claim *unstructured.Unstructured) labels.Selector {
	return labels.SelectorFromSet(labels.Set{claimNameLabel: claim.GetName()})
}

// LaunchType says how a claim came by its Sandbox, "warm" or "cold".
func (Commands) LaunchType(sandbox, _ *unstructured.Unstructured) string {
	if _, member := sandbox.GetLabels()[hashLabel]; member {
		return "warm"
	}
	return "cold"
}

// SandboxRevision names the revision that somebody's Sandbox is built from, but for what
// its claim asked to have changed. One that refers to a template does not show it.
func (p *Platform) SandboxRevision(ctx context.Context, sandbox *unstructured.Unstructured) (platform.Stamp, error) {
	f, err := p.Snapshot(ctx, platform.Write{Operation: freshness.ColdStart, New: sandbox, Claim: claimOf(sandbox)})
	stamp := platform.Stamp{Namespace: f.Namespace, Enforcement: f.Enforcement}
	if err != nil || templateRef(sandbox) != "" {
		return stamp, err
	}
	stamp.Hash, err = freshness.RevisionWithin(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
	return stamp, err
}

// Restore leaves how many members a SandboxSet is to have, and how it scales and updates.
// Of a SandboxTemplate nothing but its Pod counts, and nothing else is put back.
func (Commands) Restore(template, earlier *unstructured.Unstructured) error {
	was, _, err := unstructured.NestedMap(earlier.Object, "spec")
	if err != nil {
		return fmt.Errorf("reading spec of %s as it was: %w", template.GetName(), err)
	}
	spec, _, err := unstructured.NestedMap(template.Object, "spec")
	if err != nil {
		return fmt.Errorf("reading spec of %s: %w", template.GetName(), err)
	}
	if spec == nil {
		spec = map[string]any{}
	}
	keys := []string{"template"}
	if template.GetKind() != kindTemplate {
		keys = append(keys, "templateRef", "volumeClaimTemplates")
		keys = append(keys, ownFields...)
	}
	for _, key := range keys {
		if value, had := was[key]; had {
			spec[key] = value
		} else {
			delete(spec, key)
		}
	}
	template.Object["spec"] = spec
	return nil
}
