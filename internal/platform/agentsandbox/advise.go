package agentsandbox

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

const kindTemplate = "SandboxTemplate"

// Adviser predicts what a write by a person leads to. What the write names is
// read live, because it may have been written a moment ago; whatever is only
// counted comes from the Lister and may be late.
type Adviser struct {
	Platform *Platform
	Lister   *Lister
}

// Inputs returns what an object of the platform says to Freshbind.
func (*Adviser) Inputs(obj *unstructured.Unstructured) advice.Inputs {
	if obj == nil {
		return advice.Inputs{}
	}
	switch extensionKind(obj) {
	case kindPool:
		return advice.Inputs{Annotations: obj.GetAnnotations(), Strategy: str(obj.Object, "spec", "updateStrategy", "type")}
	case kindTemplate:
		return advice.Inputs{
			Annotations:    obj.GetAnnotations(),
			PodLabels:      nestedStringMap(obj, "labels"),
			PodAnnotations: nestedStringMap(obj, "annotations"),
		}
	}
	return advice.Inputs{}
}

func nestedStringMap(template *unstructured.Unstructured, key string) map[string]string {
	m, _, _ := unstructured.NestedStringMap(template.Object, "spec", "podTemplate", "metadata", key)
	return m
}

func extensionKind(obj *unstructured.Unstructured) string {
	if gk := obj.GroupVersionKind().GroupKind(); gk.Group == ExtensionsGroup {
		return gk.Kind
	}
	return ""
}

// Predict returns the effect of a write; nil when it leads to nothing that
// anybody has to be told. old is nil for a CREATE. An error says that it could
// not be told.
func (a *Adviser) Predict(ctx context.Context, old, obj *unstructured.Unstructured) (advice.Effect, error) {
	switch kind := extensionKind(obj); {
	case kind == kindTemplate:
		return a.TemplateChange(ctx, old, obj)
	case kind == kindClaim && old == nil:
		return a.Claim(ctx, obj)
	}
	return nil, nil
}

// TemplateChange counts what a write of a template makes of the idle members
// of its pools. old is nil when no such template is stored.
func (a *Adviser) TemplateChange(ctx context.Context, old, obj *unstructured.Unstructured) (advice.TemplateChange, error) {
	before, after, err := a.rendered(ctx, old, obj)
	if err != nil {
		return advice.TemplateChange{}, err
	}
	change := advice.TemplateChange{After: after.Hash()}
	if before != nil {
		if change.Before = before.Hash(); change.Before == change.After {
			return change, nil
		}
	}
	pools, err := a.poolsOf(ctx, obj.GetNamespace(), obj.GetName())
	if len(pools) == 0 {
		return change, err
	}
	members, err := a.Lister.members(ctx, obj.GetNamespace(), pools, true)
	if err != nil {
		return advice.TemplateChange{}, err
	}
	in, err := a.setting(ctx, obj.GetNamespace())
	if err != nil {
		return advice.TemplateChange{}, err
	}
	done, err := a.Platform.Turns.Take(ctx, obj.GetNamespace())
	if err != nil {
		return advice.TemplateChange{}, err
	}
	defer done()
	for _, pool := range pools {
		count := advice.PoolChange{Name: pool.GetName(), Rollout: a.rollout(pool, in)}
		injected := settings.Pool(pool.GetAnnotations()).InjectedPaths()
		for _, m := range members[pool.GetUID()] {
			tally(&count, m, obj.GetName(), before, after, injected)
		}
		change.Pools = append(change.Pools, count)
	}
	return change, nil
}

// rendered renders a template as it is stored, which is nil for none, and as it is
// about to be.
func (a *Adviser) rendered(ctx context.Context, old, obj *unstructured.Unstructured) (*revision.Blueprint, revision.Blueprint, error) {
	done, err := a.Platform.Turns.Take(ctx, obj.GetNamespace())
	if err != nil {
		return nil, revision.Blueprint{}, err
	}
	defer done()
	after, err := RenderMember(obj)
	if err != nil || old == nil {
		return nil, after, err
	}
	before, err := RenderMember(old)
	if err != nil {
		return nil, after, fmt.Errorf("as it is stored: %w", err)
	}
	return &before, after, nil
}

// tally counts one member. Without a stored template every member that differs
// from the new one becomes stale.
func tally(count *advice.PoolChange, m unclaimed, template string, before *revision.Blueprint, after revision.Blueprint, injected revision.PathSet) {
	if m.template != "" && m.template != template {
		count.Add(false, false)
		return
	}
	next, known := m.is(after, injected)
	now := true
	if before != nil {
		now, _ = m.is(*before, injected)
	}
	if !known {
		count.Guessed++
		now = true
	}
	count.Add(now, next)
}

// poolsOf lists the pools that refer to a template and want members; none with an error.
func (a *Adviser) poolsOf(ctx context.Context, namespace, template string) ([]*unstructured.Unstructured, error) {
	all, err := a.Lister.pools(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, pool := range all {
		if TemplateOf(pool) == template && Replicas(pool) > 0 {
			out = append(out, pool)
		}
	}
	return out, nil
}

// setting is what holds for all pools of a namespace.
type setting struct {
	enforced bool
	floor    freshness.Strategy
}

func (a *Adviser) setting(ctx context.Context, namespace string) (setting, error) {
	labels, err := a.Platform.NamespaceLabels(ctx, namespace)
	if err != nil {
		return setting{}, err
	}
	d := a.Platform.Defaults
	return setting{d.ModeOf(labels, "") == settings.Enforce, d.Floors.Strategy(labels)}, nil
}

func (a *Adviser) rollout(pool *unstructured.Unstructured, in setting) advice.Rollout {
	annotations := settings.Pool(pool.GetAnnotations())
	return advice.Rollout{
		Floor:      in.floor,
		Annotation: annotations[settings.StrategyKey],
		Spec:       strategyIn(pool),
		Default:    a.Platform.Defaults.Strategy,
		Enforced:   in.enforced || annotations.Enforces(),
		AdmitAny:   annotations.AdmitsAny(),
	}
}
