package webhooks

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/floor"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

// Mode says what becomes of a verdict.
type Mode string

const (
	// Enforce: a denial is a denial.
	Enforce Mode = "enforce"
	// Audit: everything is judged and counted, nothing is denied or changed.
	Audit Mode = "audit"
)

// ParseMode returns the mode of that name.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Enforce, Audit:
		return m, nil
	}
	return "", fmt.Errorf("%q is not a mode: use %s or %s", s, Enforce, Audit)
}

// Live reads one object as it is stored now; nil when it does not exist.
type Live interface {
	Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error)
}

// Modes finds the mode that holds for a namespace and a pool.
type Modes struct {
	// Live is asked first.
	Live Live
	// Cached answers when Live cannot: it is enough to know how to fail.
	Cached client.Reader
	// Default holds where nothing is said, or nothing that can be understood.
	Default Mode
	// Floors are what no label goes below.
	Floors floor.Floors
	// Pools are those of a namespace, by a cache: it is enough to know how to fail.
	// nil where no pool can say anything.
	Pools func(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error)
}

var namespaces = schema.GroupResource{Resource: "namespaces"}

// Of returns the mode for a namespace and for what the pool itself says ("" for
// nothing). An error says that it could not be read; the mode returned with it
// is the last one known.
func (m *Modes) Of(ctx context.Context, namespace, pool string) (Mode, error) {
	if Mode(pool) == Enforce {
		return Enforce, nil
	}
	obj, err := m.Live.Get(ctx, namespaces, "", namespace)
	if err != nil {
		return m.lastKnown(ctx, namespace), fmt.Errorf("reading the mode of namespace %s: %w", namespace, err)
	}
	if obj == nil {
		return m.By(nil), nil
	}
	return m.By(obj.GetLabels()), nil
}

// mayBeAsked is what a pool may say of a write that could not be judged: which pool
// it is about is not known for certain then. It is "enforce" when the object was made
// while its pool said so, and when any pool of the namespace does.
func (m *Modes) mayBeAsked(ctx context.Context, obj *unstructured.Unstructured) string {
	if asked := obj.GetLabels()[platform.EnforcementKey]; Mode(asked) == Enforce || m.Pools == nil {
		return asked
	}
	pools, err := m.Pools(context.WithoutCancel(ctx), obj.GetNamespace())
	enforces := func(pool *unstructured.Unstructured) bool {
		return Mode(pool.GetAnnotations()[platform.EnforcementKey]) == Enforce
	}
	if err == nil && slices.ContainsFunc(pools, enforces) {
		return string(Enforce)
	}
	return ""
}

// Known reports whether Freshbind is to act, by the cache: it may be late, and
// costs no read.
func (m *Modes) Known(ctx context.Context, namespace, pool string) (bool, error) {
	return Mode(pool) == Enforce || m.lastKnown(ctx, namespace) == Enforce, nil
}

// Acts reports whether Freshbind is to act, as the namespace is stored now.
func (m *Modes) Acts(ctx context.Context, namespace, pool string) (bool, error) {
	mode, err := m.Of(ctx, namespace, pool)
	return err == nil && mode == Enforce, err
}

// lastKnown reads the cache even when the caller's time is up: the cache needs
// none.
func (m *Modes) lastKnown(ctx context.Context, namespace string) Mode {
	var ns corev1.Namespace
	if err := m.Cached.Get(context.WithoutCancel(ctx), types.NamespacedName{Name: namespace}, &ns); err != nil {
		return m.By(nil)
	}
	return m.By(ns.Labels)
}

// By returns the mode of a namespace with these labels.
func (m *Modes) By(labels map[string]string) Mode {
	if m.Floors.Enforces(labels) {
		return Enforce
	}
	if mode, err := ParseMode(labels[platform.EnforcementKey]); err == nil {
		return mode
	}
	return m.Default
}

// LeastStrategy returns the least strict strategy in a namespace, as its labels
// are now; "" for any.
func (m *Modes) LeastStrategy(ctx context.Context, namespace string) (freshness.Strategy, error) {
	if !m.Floors.HasStrategy() {
		return "", nil
	}
	obj, err := m.Live.Get(ctx, namespaces, "", namespace)
	if err != nil || obj == nil {
		return "", err
	}
	return m.Floors.Strategy(obj.GetLabels()), nil
}

// KnownStrategy is LeastStrategy by the cache: it may be late, and costs no read.
func (m *Modes) KnownStrategy(ctx context.Context, namespace string) (freshness.Strategy, error) {
	if !m.Floors.HasStrategy() {
		return "", nil
	}
	var ns corev1.Namespace
	if err := m.Cached.Get(ctx, types.NamespacedName{Name: namespace}, &ns); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("reading the floor of namespace %s from the cache: %w", namespace, err)
	}
	return m.Floors.Strategy(ns.Labels), nil
}

// Enforced reports whether binds in the namespace are enforced.
func (m *Modes) Enforced(ctx context.Context, namespace string) (bool, error) {
	mode, err := m.Of(ctx, namespace, "")
	return mode == Enforce, err
}

// Marks reports whether a sandbox is to say whose it is: where the namespace is
// enforced, or the sandbox was made while its pool was.
func (m *Modes) Marks(ctx context.Context, namespace, sandbox string) (bool, error) {
	mode, err := m.Of(ctx, namespace, sandbox)
	return mode == Enforce, err
}
