// Package warmpool lets tests ask the same of any warm-pool system: that it has pools, gives
// claims what is in them, and can be made to see things late.
package warmpool

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
)

// Platform is a warm-pool system.
type Platform interface {
	// Options says what a world with it consists of, and Begin starts, until ctx ends,
	// what has to wait for that world.
	Options(ctx context.Context, o *scenario.WorldOptions) error
	Begin(ctx context.Context, w *scenario.World) error
	// Rules are what somebody may do who has pools and claims, and whoever may do all to
	// the system's objects and to Pods.
	Rules() (user, owner []rbacv1.PolicyRule)
	// Late makes one of its Views late.
	Late(view int, d time.Duration)
	// Watched are the resources that it watches, through these proxies.
	Watched() []schema.GroupResource
	Proxies() []*controlplane.Proxy
	// NewPool creates one, which is not yet full, in a namespace that there is. What is
	// asked of it goes on until ctx ends.
	NewPool(ctx context.Context, o PoolOptions) (Pool, error)
}

// Views are what a platform may see late: which ones, each platform says.
const Views = 2

// Pool is a warm pool.
type Pool interface {
	// In is its namespace.
	In() string
	// Rest waits until all members are there, ready, shown and, unless image is "", of
	// that image; Idle are those that there are.
	Rest(ctx context.Context, image string, within time.Duration) ([]scenario.Member, error)
	Idle(ctx context.Context) ([]scenario.Member, error)
	// Claims has claims of these names made, all at once, and Drop ended.
	Claims(ctx context.Context, names ...string) error
	Drop(ctx context.Context, names ...string) error
	// Served waits until all these claims have what they asked for. When the time is up
	// the error is a *scenario.UnreadyError.
	Served(ctx context.Context, within time.Duration, names ...string) error
	// BuiltFrom is what members are built from, by resource and name, and Asking what it
	// is after a change.
	BuiltFrom() (dynamic.ResourceInterface, string)
	Asking(template *unstructured.Unstructured, spec corev1.PodSpec) *unstructured.Unstructured
	Sandboxes() dynamic.ResourceInterface
	// Itself is the pool, by resource and name.
	Itself() (dynamic.ResourceInterface, string)
	// Unserved finds the members that nobody is given.
	Unserved(ctx context.Context) (scenario.Probe, error)
}

// PoolOptions say where a pool is, and whose.
type PoolOptions struct {
	Namespace string
	// Labels are the namespace's, Annotations the pool's.
	Labels, Annotations map[string]string
	// Strategy is Recreate, OnReplenish, RollingUpdate or OwnRolling.
	Strategy string
	Size     int
	// ByReference has members name a template, where the pool could be that itself. Then
	// nobody is given a Sandbox that is created for them.
	ByReference bool
	// Spec is what it begins with.
	Spec corev1.PodSpec
	User *rest.Config
}

// PoolName is every pool's, and its template's.
const PoolName = "python"

// RollingUpdate is chosen by annotation: the pool's own spec does not know it.
const RollingUpdate = "RollingUpdate"

// enforced: it is in a namespace like those of which it can be seen whether webhooks are
// in force. If they are in one, they are in all.
func (o PoolOptions) enforced() bool { return maps.Equal(o.Labels, scenario.Enforce()) }

// OfPool reports whether a pool has this Sandbox, and nobody else.
func OfPool(sandbox *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOfNoCopy(sandbox)
	return owner != nil && (owner.Kind == "SandboxWarmPool" || owner.Kind == "SandboxSet")
}
