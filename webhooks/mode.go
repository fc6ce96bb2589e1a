package webhooks

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Modes finds the mode that holds for a namespace and a pool.
type Modes struct {
	// Live is asked first.
	Live platform.NamespaceLabels
	// Cached answers when Live cannot: it is enough to know how to fail.
	Cached   platform.NamespaceLabels
	Defaults settings.Defaults
	// Pools are those of a namespace, by a cache: it is enough to know how to fail.
	// nil where no pool can say anything.
	Pools func(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error)
}

// Of returns the mode for a namespace and for what the pool itself says ("" for
// nothing). An error says that it could not be read; the mode returned with it
// is the last one known.
func (m *Modes) Of(ctx context.Context, namespace, pool string) (settings.Mode, error) {
	return m.in(ctx, namespace, platform.Namespace{}, pool)
}

// in is Of for a namespace that was read with the write's snapshot, if it was.
func (m *Modes) in(ctx context.Context, name string, namespace platform.Namespace, pool string) (settings.Mode, error) {
	if settings.Mode(pool) == settings.Enforce {
		return settings.Enforce, nil
	}
	if !namespace.Started() {
		namespace = platform.StartNamespace(ctx, name, m.Live)
	}
	labels, err := namespace.Labels()
	if err != nil {
		return m.lastKnown(ctx, name), fmt.Errorf("reading the mode of namespace %s: %w", name, err)
	}
	return m.Defaults.ModeOf(labels, ""), nil
}

// mayBeAsked is what a pool may say of a write that could not be judged: which pool
// it is about is not known for certain then. It is "enforce" when the object was made
// while its pool said so, and when any pool of the namespace does.
func (m *Modes) mayBeAsked(ctx context.Context, obj *unstructured.Unstructured) string {
	if asked := obj.GetLabels()[settings.EnforcementKey]; settings.Mode(asked) == settings.Enforce || m.Pools == nil {
		return asked
	}
	// A cache that cannot be read shows none.
	if enforces, _ := m.poolEnforces(context.WithoutCancel(ctx), obj.GetNamespace()); enforces {
		return string(settings.Enforce)
	}
	return ""
}

// poolEnforces reports whether any pool of the namespace does, by the cache.
func (m *Modes) poolEnforces(ctx context.Context, namespace string) (bool, error) {
	if m.Pools == nil {
		return false, nil
	}
	pools, err := m.Pools(ctx, namespace)
	if err != nil {
		return false, fmt.Errorf("reading the pools of namespace %s: %w", namespace, err)
	}
	return slices.ContainsFunc(pools, func(pool *unstructured.Unstructured) bool { return settings.Pool(pool.GetAnnotations()).Enforces() }), nil
}

// Known reports whether Freshbind is to act, by the cache: it may be late, and
// costs no read.
func (m *Modes) Known(ctx context.Context, namespace, pool string) (bool, error) {
	return settings.Mode(pool) == settings.Enforce || m.lastKnown(ctx, namespace) == settings.Enforce, nil
}

// Acts reports whether Freshbind is to act, as the namespace is stored now.
func (m *Modes) Acts(ctx context.Context, namespace, pool string) (bool, error) {
	mode, err := m.Of(ctx, namespace, pool)
	return err == nil && mode == settings.Enforce, err
}

// ClaimsWait reports whether claims of the namespace can be waiting for Freshbind: one
// pool that enforces closes the whole namespace, because a cold start does not say which
// pool it is for.
func (m *Modes) ClaimsWait(ctx context.Context, namespace string) (bool, error) {
	if acts, err := m.Acts(ctx, namespace, ""); acts || err != nil {
		return acts, err
	}
	return m.poolEnforces(ctx, namespace)
}

// lastKnown reads the cache even when the caller's time is up: the cache needs
// none. Of what it cannot read it knows no labels.
func (m *Modes) lastKnown(ctx context.Context, namespace string) settings.Mode {
	labels, _ := m.Cached(context.WithoutCancel(ctx), namespace)
	return m.Defaults.ModeOf(labels, "")
}
