package manager

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/controllers/history"
	"github.com/freshbind/freshbind/controllers/pools"
	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/webhooks"
)

// Guarded is a warm-pool system that the manager guards while the API server serves its
// kinds.
type Guarded struct {
	// Name is what metrics and messages call it.
	Name string
	// Objects says which kinds it has, and reads its templates and pools.
	Objects GuardedObjects
	// Admission is what the API server is told of its writes.
	Admission platform.Admission
	// Connect returns it with what is stored. Keep is part of the outcome if, and only
	// if, Kept is set.
	Connect func(Sources) Connected
	// Kept has its members cached, for controllers that keep its pools current; nil for
	// one whose pools are left to itself.
	Kept platform.Objects
}

// GuardedObjects is what guarding needs to know of a platform's objects.
type GuardedObjects interface {
	platform.Catalog
	history.Platform
}

// Sources are where a platform reads, and what the manager was told.
type Sources struct {
	// Stored reads objects as they are stored now, ByUID those whose UID a Ref names in
	// place of a name.
	platform.Stored
	ByUID   platform.Reader
	History platform.History
	// API lists what is stored, Cache what is watched, and CachedNamespaces are those
	// of the latter.
	API, Cache       client.Reader
	CachedNamespaces platform.NamespaceLabels
	// CachedNode is the node that a cache shows a member's Pod on, "" for none; nil where
	// members are not cached.
	CachedNode func(namespace, pod string) string
	Defaults   settings.Defaults
	// SchedulerName is that of Scheduling, RepairOff says that nothing is to be repaired.
	SchedulerName string
	RepairOff     bool
	// Turns shares CPU between namespaces.
	Turns *fair.Turns
}

// Connected is a platform that reads what is stored.
type Connected struct {
	Guard Guard
	// Deletions are about members, PodDeletions about bare Pods; nil where nobody has
	// to be protected from a pool's controller.
	Deletions, PodDeletions webhooks.Deletions
	// Adviser predicts what people's writes lead to, given the pools that a cache shows
	// of a namespace; nil for one that says nothing.
	Adviser func(pools PoolsIn) webhooks.Adviser
	// Keep keeps its pools current; nil leaves them to the platform itself.
	Keep *Keep
}

// Guard judges and stamps the writes of a platform.
type Guard interface {
	webhooks.Platform
	webhooks.Revisions
}

// PoolsIn are the pools of a namespace.
type PoolsIn func(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error)

// Keep is what the controllers need that keep pools current and claims moving.
type Keep struct {
	Platform KeptPlatform
	// Cached inspects with what caches show of namespaces.
	Cached platform.Inspector
	// BarePods is nil for a platform without members that are Pods themselves. Whoever
	// takes one has to be a claim of Claims.
	BarePods BarePods
	// Claims is nil where claims have no object, and where nobody but the platform has to
	// look after them.
	Claims Claims
}

// KeptPlatform reads what is stored, for controllers.
type KeptPlatform interface {
	platform.Objects
	Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error)
	platform.Inspector
	pools.PodRevisions
	pools.Snapshots
}

// Claims is about claims that are objects and have one member each, whose controller
// may have to be woken.
type Claims interface {
	// EnforcementFor is what the pool of a claim says of its own enforcement; "" for
	// nothing.
	EnforcementFor(ctx context.Context, namespace, claim string) (string, error)
	// IsWaiting reports whether a claim has no member yet.
	IsWaiting(claim *unstructured.Unstructured) bool
}

// BarePods is about members that are Pods themselves.
type BarePods interface {
	platform.BarePods
	platform.ReleasedPods
	pools.BarePodInspector
}

// served is a platform in the versions that the API server serves of it.
type served struct {
	*Guarded
	platform.Served
}

// find finds out whether all of the platform's kinds are served, and in which versions.
func (g *Guarded) find(ctx context.Context, ask platform.Discovery) (served, bool, error) {
	kinds, found, err := ask.Find(ctx, g.Objects.Kinds())
	if err != nil || !found {
		return served{}, false, err
	}
	return served{g, kinds}, true, nil
}
