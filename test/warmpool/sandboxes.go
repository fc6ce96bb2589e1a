package warmpool

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// AgentSandbox is agent-sandbox with its real controllers. Its first view are templates,
// the other one pools.
type AgentSandbox struct {
	// Release is one of upstream.Releases.
	Release string

	// version is the API's, and proxy between it and its controllers.
	version string
	proxy   *controlplane.Proxy
}

// Options asks for the release.
func (a *AgentSandbox) Options(ctx context.Context, o *scenario.WorldOptions) error {
	var err error
	o.Release = a.Release
	o.Cluster.CRDs, err = upstream.CRDs(ctx, a.Release)
	return err
}

// Begin looks where its controllers are.
func (a *AgentSandbox) Begin(_ context.Context, w *scenario.World) error {
	a.version, a.proxy = w.Version, w.Controllers.Proxy()
	return nil
}

// ClaimsAreObjects is true.
func (*AgentSandbox) ClaimsAreObjects() bool { return true }

// Restart starts the controllers again.
func (a *AgentSandbox) Restart(ctx context.Context, w *scenario.World) error {
	if err := w.Controllers.Stop(); err != nil {
		return err
	}
	var err error
	if w.Controllers, err = upstream.Start(context.WithoutCancel(ctx), w.Cluster, upstream.Options{Version: a.Release}); err != nil {
		return err
	}
	return a.Begin(ctx, w)
}

// Rules are for its kinds.
func (*AgentSandbox) Rules() (user, owner []rbacv1.PolicyRule) {
	user = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "delete"}},
		{APIGroups: []string{"agents.x-k8s.io"}, Resources: []string{"sandboxes"}, Verbs: []string{"get", "list", "create", "delete"}},
		{APIGroups: []string{"extensions.agents.x-k8s.io"}, Resources: []string{"sandboxclaims"}, Verbs: []string{"get", "list", "create", "delete"}},
		{APIGroups: []string{"extensions.agents.x-k8s.io"}, Resources: []string{"sandboxtemplates"}, Verbs: []string{"get", "create", "update"}},
		{APIGroups: []string{"extensions.agents.x-k8s.io"}, Resources: []string{"sandboxwarmpools"}, Verbs: []string{"create"}},
	}
	owner = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "pods/ephemeralcontainers"}, Verbs: []string{"*"}},
		{APIGroups: []string{"agents.x-k8s.io", "extensions.agents.x-k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}
	return user, owner
}

// Late makes a view late.
func (a *AgentSandbox) Late(view int, d time.Duration) {
	late := [Views]schema.GroupResource{upstream.SandboxTemplates, upstream.SandboxWarmPools}[view]
	a.proxy.SetDelay(late.Group, late.Resource, d)
}

// Admission is what the API server is told of it.
func (*AgentSandbox) Admission() platform.Admission { return agentsandbox.Admission() }

// Templates are SandboxTemplates.
func (*AgentSandbox) Templates() []schema.GroupResource {
	return []schema.GroupResource{upstream.SandboxTemplates}
}

// Watched are its own kinds, Pods and Nodes.
func (*AgentSandbox) Watched() []schema.GroupResource {
	return []schema.GroupResource{
		upstream.Sandboxes, upstream.SandboxClaims, upstream.SandboxTemplates, upstream.SandboxWarmPools, {Resource: "pods"}, {Resource: "nodes"},
	}
}

// Proxies are one.
func (a *AgentSandbox) Proxies() []*controlplane.Proxy { return []*controlplane.Proxy{a.proxy} }

// SandboxPool is a SandboxWarmPool.
type SandboxPool struct {
	*scenario.Namespace
	scenario.Pool
}

// NewPool creates a SandboxWarmPool with its template.
func (a *AgentSandbox) NewPool(ctx context.Context, o PoolOptions) (Pool, error) {
	return a.CreatePool(ctx, o)
}

// CreatePool is NewPool for whoever wants to know what it is.
func (a *AgentSandbox) CreatePool(ctx context.Context, o PoolOptions) (SandboxPool, error) {
	ns, err := scenario.Use(o.User, a.version, o.Namespace)
	if err != nil {
		return SandboxPool{}, err
	}
	if o.enforced() {
		if err := ns.WaitGuarded(ctx, within); err != nil {
			return SandboxPool{}, err
		}
	}
	p := scenario.Pool{Name: PoolName, Template: PoolName, Replicas: o.Size, Strategy: o.Strategy}
	template := builders.MakeTemplate(o.Namespace, p.Template).APIVersion(a.version).PodSpec(o.Spec)
	return SandboxPool{ns, p}, ns.Create(ctx, template.Obj(), a.WarmPool(o, p))
}

// WarmPool is a SandboxWarmPool that is not stored.
func (a *AgentSandbox) WarmPool(o PoolOptions, p scenario.Pool) *unstructured.Unstructured {
	warm := builders.MakePool(o.Namespace, p.Name).APIVersion(a.version).Template(p.Template).Replicas(int64(p.Replicas))
	for key, value := range o.Annotations {
		warm.Annotation(key, value)
	}
	if o.Strategy == RollingUpdate {
		return warm.Strategy(scenario.OnReplenish).Annotation(settings.StrategyKey, RollingUpdate).Obj()
	}
	return warm.Strategy(o.Strategy).Obj()
}

// In is the namespace's name.
func (p SandboxPool) In() string { return p.Namespace.Name }

// Rest waits as WaitPool does.
func (p SandboxPool) Rest(ctx context.Context, image string, within time.Duration) ([]scenario.Member, error) {
	return p.WaitPool(ctx, p.Pool, image, within)
}

// Idle are the members.
func (p SandboxPool) Idle(ctx context.Context) ([]scenario.Member, error) {
	return p.Members(ctx, p.Pool.Name)
}

// Claims are SandboxClaims.
func (p SandboxPool) Claims(ctx context.Context, names ...string) error {
	return p.CreateClaims(ctx, p.Pool, names...)
}

// Drop deletes them.
func (p SandboxPool) Drop(ctx context.Context, names ...string) error {
	return p.DeleteClaims(ctx, names...)
}

// Served waits until they are ready.
func (p SandboxPool) Served(ctx context.Context, within time.Duration, names ...string) error {
	return p.WaitClaims(ctx, within, names...)
}

// BuiltFrom is a SandboxTemplate.
func (p SandboxPool) BuiltFrom() (dynamic.ResourceInterface, string) {
	return p.Resource(upstream.SandboxTemplates), p.Template
}

// Itself is a SandboxWarmPool.
func (p SandboxPool) Itself() (dynamic.ResourceInterface, string) {
	return p.Resource(upstream.SandboxWarmPools), p.Pool.Name
}

// Asking changes it.
func (p SandboxPool) Asking(template *unstructured.Unstructured, spec corev1.PodSpec) *unstructured.Unstructured {
	return builders.TemplateFrom(template).PodSpec(spec).Obj()
}

// Sandboxes are those of the namespace.
func (p SandboxPool) Sandboxes() dynamic.ResourceInterface { return p.Resource(upstream.Sandboxes) }

// Unserved drains the pool.
func (p SandboxPool) Unserved(ctx context.Context) (scenario.Probe, error) {
	return p.Ghosts(ctx, p.Pool, "probe-")
}
