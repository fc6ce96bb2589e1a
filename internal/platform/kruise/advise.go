package kruise

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// Adviser predicts for a person who asks what an edit of a SandboxSet leads to.
type Adviser struct {
	Platform *Platform
	// API is asked for members, page by page.
	API client.Reader
}

// Inputs returns what a SandboxSet says to Freshbind.
func (*Adviser) Inputs(set *unstructured.Unstructured) advice.Inputs {
	if set == nil {
		return advice.Inputs{}
	}
	return advice.Inputs{Annotations: set.GetAnnotations()}
}

// TemplateChange counts what an edit of a SandboxSet makes of its idle members. old is nil when none is stored, which has
// no members.
func (a *Adviser) TemplateChange(ctx context.Context, old, set *unstructured.Unstructured) (advice.TemplateChange, error) {
	after, err := contentOf(set)
	if err != nil {
		return advice.TemplateChange{}, err
	}
	change := advice.TemplateChange{After: after.Hash()}
	if old == nil {
		return change, nil
	}
	before, err := contentOf(old)
	if err != nil {
		return advice.TemplateChange{}, fmt.Errorf("as it is stored: %w", err)
	}
	if change.Before = before.Hash(); change.Before == change.After {
		return change, nil
	}
	count := advice.PoolChange{Name: set.GetName()}
	if count.Rollout, err = a.rollout(ctx, set); err != nil {
		return advice.TemplateChange{}, err
	}
	members, err := a.idle(ctx, old)
	if err != nil {
		return advice.TemplateChange{}, err
	}
	injected := settings.Pool(set.GetAnnotations()).InjectedPaths()
	for _, m := range members {
		is, err := contentOf(m)
		if err != nil {
			return advice.TemplateChange{}, fmt.Errorf("reading sandbox %s: %w", m.GetName(), err)
		}
		count.Add(revision.Equal(before, is, injected), revision.Equal(after, is, injected))
	}
	change.Pools = []advice.PoolChange{count}
	return change, nil
}

// idle lists the members of a SandboxSet that nobody has and that are not being deleted.
func (a *Adviser) idle(ctx context.Context, set *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	gvr, err := a.Platform.Resolver.Resource(ctx, Sandboxes)
	if err != nil {
		return nil, fmt.Errorf("finding the served version of %s: %w", Sandboxes, err)
	}
	all, err := platform.ListPages(ctx, a.API, gvr.GroupVersion().WithKind(kindSandbox+"List"), &client.ListOptions{
		Namespace: set.GetNamespace(), LabelSelector: a.Platform.MembersOf(set.GetName()), Limit: platform.PageSize,
	})
	if err != nil {
		return nil, fmt.Errorf("listing members of sandboxset %s: %w", set.GetName(), err)
	}
	var out []*unstructured.Unstructured
	for _, sandbox := range all {
		locked := sandbox.GetAnnotations()[ownerAnnotation] == scaleDown
		if poolOf(sandbox).UID == string(set.GetUID()) && claimOf(sandbox).UID == "" && sandbox.GetDeletionTimestamp() == nil && !locked {
			out = append(out, sandbox)
		}
	}
	return out, nil
}

// rollout is what becomes of stale members. Nobody asks Freshbind to roll a SandboxSet that says nothing.
func (a *Adviser) rollout(ctx context.Context, set *unstructured.Unstructured) (advice.Rollout, error) {
	labels, err := a.Platform.NamespaceLabels(ctx, set.GetNamespace())
	if err != nil {
		return advice.Rollout{}, err
	}
	d, annotations := a.Platform.Defaults, settings.Pool(set.GetAnnotations())
	out := advice.Rollout{
		Annotation: annotations[settings.StrategyKey], Default: freshness.PlatformOwned,
		Enforced: d.ModeOf(labels, "") == settings.Enforce || annotations.Enforces(), AdmitAny: annotations.AdmitsAny(),
	}
	if !isLeftToItself(set) {
		out.Floor = d.Floors.Strategy(labels)
	}
	return out, nil
}
