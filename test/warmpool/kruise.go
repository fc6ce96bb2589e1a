package warmpool

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/test/scenario"
)

// What is written onto Sandboxes.
const (
	KeyOwner     = fakekruise.Group + "/owner"
	KeyLock      = fakekruise.Group + "/lock"
	LabelClaimed = fakekruise.Group + "/sandbox-claimed"
	LabelClaim   = fakekruise.Group + "/claim-name"
	// KeyLetGo is on what its user gives back, keyRecycles on what may be.
	KeyLetGo    = fakekruise.Group + "/cleanup"
	keyRecycles = fakekruise.Group + "/cleanup-enabled"

	labelPool     = fakekruise.Group + "/sandbox-pool"
	labelTemplate = fakekruise.Group + "/sandbox-template"
	labelHash     = fakekruise.Group + "/template-hash"
)

// OwnRolling leaves a SandboxSet to its own controller.
const OwnRolling = "own"

// Kruise is OpenKruise Agents, played by its double. Its first view is what the
// controllers see of Sandboxes and of what they are built from, the other one what the E2B
// server does.
type Kruise struct {
	// Wrap, if set, is around what controllers and server send.
	Wrap func(http.RoundTripper) http.RoundTripper

	proxies [Views]*controlplane.Proxy
	as      [Views]*rest.Config
	server  atomic.Pointer[fakekruise.Server]
	// probed: a probe is under way.
	probed atomic.Bool
	// background ends with the world, end the controllers and the server that run now.
	background context.Context
	end        context.CancelFunc
}

// Options switches it on.
func (*Kruise) Options(_ context.Context, o *scenario.WorldOptions) error {
	o.Guard.Args = append(o.Guard.Args, "--platform-kruise")
	return nil
}

// Begin has the API server ask Freshbind about it, and starts controllers and server.
func (k *Kruise) Begin(ctx context.Context, w *scenario.World) error {
	if err := w.Guard.InstallFor(ctx, kruise.Admission(), kruise.Rights()...); err != nil {
		return err
	}
	// Freshbind may read the kinds before they are there.
	if err := w.Cluster.InstallCRDs(ctx, fakekruise.CRDs()...); err != nil {
		return err
	}
	for view, user := range []string{fakekruise.ControllerUser, fakekruise.ServerUser} {
		cfg, err := w.Cluster.User(user, "system:masters", "system:authenticated")
		if err != nil {
			return err
		}
		if k.proxies[view], err = w.Cluster.NewProxy(0); err != nil {
			return err
		}
		k.as[view] = k.proxies[view].Config(cfg)
		if k.Wrap != nil {
			k.as[view].Wrap(k.Wrap)
		}
	}
	k.background = ctx
	return k.start()
}

func (k *Kruise) start() error {
	var ctx context.Context
	ctx, k.end = context.WithCancel(k.background)
	options := fakekruise.Options{Remembers: k.remembers}
	if err := fakekruise.StartControllers(ctx, k.as[0], options); err != nil {
		return err
	}
	server, err := fakekruise.StartServer(ctx, k.as[1], options)
	k.server.Store(server)
	return err
}

// remembers is upstream's minute, but for members that a probe is refused: those it gets only
// if Freshbind offers them again, however long a busy machine takes for that.
func (k *Kruise) remembers() time.Duration {
	if k.probed.Load() {
		return forever
	}
	return fakekruise.CacheTimeout
}

// ClaimsAreObjects is false: the claims of its pools are requests of E2B.
func (*Kruise) ClaimsAreObjects() bool { return false }

// Restart starts controllers and server again.
func (k *Kruise) Restart(context.Context, *scenario.World) error {
	k.end()
	return k.start()
}

// Rules are for its kinds.
func (*Kruise) Rules() (user, owner []rbacv1.PolicyRule) {
	user = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "delete"}},
		{APIGroups: []string{fakekruise.Group}, Resources: []string{"sandboxes", "sandboxclaims"}, Verbs: []string{"get", "list", "create", "delete"}},
		{APIGroups: []string{fakekruise.Group}, Resources: []string{"sandboxsets", "sandboxtemplates"}, Verbs: []string{"get", "create", "update"}},
	}
	owner = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "pods/ephemeralcontainers"}, Verbs: []string{"*"}},
		{APIGroups: []string{fakekruise.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}
	return user, owner
}

// Late makes a view late.
func (k *Kruise) Late(view int, d time.Duration) {
	for _, r := range append(k.Templates(), fakekruise.Sandboxes.GroupResource()) {
		k.proxies[view].SetDelay(r.Group, r.Resource, d)
	}
}

// Admission is what the API server is told of it.
func (*Kruise) Admission() platform.Admission { return kruise.Admission() }

// Templates are SandboxSets, and what they can refer to.
func (*Kruise) Templates() []schema.GroupResource {
	return []schema.GroupResource{fakekruise.Sets.GroupResource(), fakekruise.Templates.GroupResource()}
}

// Watched are its own kinds, Pods and Nodes.
func (*Kruise) Watched() []schema.GroupResource {
	return []schema.GroupResource{
		fakekruise.Sets.GroupResource(), fakekruise.Sandboxes.GroupResource(), fakekruise.Claims.GroupResource(), fakekruise.Templates.GroupResource(),
		{Resource: "pods"}, {Resource: "nodes"},
	}
}

// Proxies are the controllers' and the E2B server's.
func (k *Kruise) Proxies() []*controlplane.Proxy { return k.proxies[:] }

// NewPool creates a SandboxSet.
func (k *Kruise) NewPool(ctx context.Context, o PoolOptions) (Pool, error) {
	return k.CreateSet(ctx, o)
}

// CreateSet is NewPool for whoever wants to know what it is.
func (k *Kruise) CreateSet(ctx context.Context, o PoolOptions) (*SetPool, error) {
	user := rest.CopyConfig(o.User)
	// A burst of claims has to be a burst, and advice is for people.
	user.QPS, user.WarningHandler = -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(user)
	if err != nil {
		return nil, fmt.Errorf("make client for namespace %s: %w", o.Namespace, err)
	}
	p := &SetPool{
		Kruise: k, client: client, in: o.Namespace, size: o.Size, refers: o.ByReference, users: map[string]*e2bUser{},
		beside: func(f func(context.Context)) { go f(ctx) },
	}
	if o.enforced() {
		if err := p.waitGuarded(ctx); err != nil {
			return nil, err
		}
	}
	if o.ByReference {
		if _, err := p.create(ctx, fakekruise.Templates, newTemplate(o)); err != nil {
			return nil, err
		}
	}
	_, err = p.create(ctx, fakekruise.Sets, newSet(o))
	return p, err
}

// Holder is who has a Sandbox of OpenKruise Agents, and has not let go of it.
func Holder(sandbox *unstructured.Unstructured) []string {
	annotations := sandbox.GetAnnotations()
	if sandbox.GroupVersionKind().Group != fakekruise.Group || annotations[KeyOwner] == "" || annotations[KeyLetGo] == "true" || OfPool(sandbox) {
		return nil
	}
	if claim := sandbox.GetLabels()[LabelClaim]; claim != "" {
		return []string{claim}
	}
	return []string{annotations[KeyOwner]}
}
