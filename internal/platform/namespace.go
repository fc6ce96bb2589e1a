package platform

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NamespaceLabels reads the labels of a namespace; none when it does not exist.
type NamespaceLabels func(ctx context.Context, name string) (map[string]string, error)

// CachedNamespaceLabels are those that a cache shows: they may be late, and cost no
// read.
func CachedNamespaceLabels(cache client.Reader) NamespaceLabels {
	return func(ctx context.Context, name string) (map[string]string, error) {
		var ns corev1.Namespace
		if err := cache.Get(ctx, types.NamespacedName{Name: name}, &ns); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading namespace %s from the cache: %w", name, err)
		}
		return ns.Labels, nil
	}
}

// Namespace is one whose labels are being read, or were. The zero value is one that
// nobody reads: it can say nothing.
type Namespace struct {
	labels func() (map[string]string, error)
	// begin starts the read of one that is read later.
	begin func()
}

// StartNamespace reads a namespace beside what else is read.
func StartNamespace(ctx context.Context, name string, read NamespaceLabels) Namespace {
	return Namespace{labels: Begin(func() (map[string]string, error) { return read(ctx, name) })}
}

// LaterNamespace reads a namespace when somebody asks for its labels, and in any case
// once that long has passed: where reads take long they may fail, and how to fail depends on
// the namespace.
func LaterNamespace(ctx context.Context, name string, read NamespaceLabels, after time.Duration) Namespace {
	begun := sync.OnceValue(func() func() (map[string]string, error) {
		return Begin(func() (map[string]string, error) { return read(ctx, name) })
	})
	time.AfterFunc(after, func() {
		if ctx.Err() == nil {
			begun()
		}
	})
	return Namespace{
		labels: func() (map[string]string, error) { return begun()() },
		begin:  func() { begun() },
	}
}

// Begin reads beside what else is done. The function that it returns waits for the
// outcome.
func Begin[T any](read func() (T, error)) func() (T, error) {
	done := make(chan struct{})
	var out T
	// This stands if the read ends its goroutine.
	err := errors.New("the read ended without an answer")
	go func() {
		defer close(done)
		out, err = read()
	}()
	return func() (T, error) {
		<-done
		return out, err
	}
}

// Started reports whether anybody reads it, or did.
func (n Namespace) Started() bool { return n.labels != nil }

// Begin has it read now, beside something else that must be waited for.
func (n Namespace) Begin() {
	if n.begin != nil {
		n.begin()
	}
}

// Labels waits for the read.
func (n Namespace) Labels() (map[string]string, error) {
	if !n.Started() {
		return nil, errors.New("nobody read the namespace")
	}
	return n.labels()
}
