package agentsandbox

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// stored are the objects as they are in etcd now; nil says absent.
type stored struct {
	claim, pool, template, pod, node *unstructured.Unstructured
	namespace                        platform.Namespace
	// asked is the claim's pool, where the sandbox is no pool's.
	asked *unstructured.Unstructured
	// held are the sandboxes, other than the written one, that the claim has.
	held []string
}

// read gets everything at once that the Sandbox itself names, and what it can guess; a
// second round follows only for what only those objects name.
func (p *Platform) read(ctx context.Context, namespace platform.Namespace, w platform.Write, m freshness.Member) (stored, error) {
	out := stored{namespace: namespace}
	guesses := p.guessed(ctx, w, m)
	g := p.group(ctx, w.Judged().GetNamespace())
	if w.Claim.Name != "" {
		g.get(&out.claim, Claims, w.Claim.Name)
	}
	if m.Controller.Kind == freshness.OwnedByPool {
		g.get(&out.pool, Pools, m.Controller.Name)
	}
	switch w.Operation {
	case freshness.Bind, freshness.Idle, freshness.WarmStart:
		g.get(&out.pod, Pods, m.PodName)
	case freshness.ColdStart, freshness.Birth:
		if m.PodName != "" && !w.ContentOnly && !namedByTheServer(w) {
			g.get(&out.pod, Pods, m.PodName)
		}
	}
	if m.Template != "" {
		g.get(&out.template, Templates, m.Template)
	}
	if err := g.wait(); err != nil {
		return stored{}, err
	}
	if err := p.readNamed(ctx, w, m, guesses, &out); err != nil {
		return stored{}, err
	}
	return out, nil
}

// namedByTheServer: a pool's controller has the API server draw the names of members.
// Nobody has a Pod ready for such a name. The policy freshbind-born sees to it that nobody
// else makes one that says so.
func namedByTheServer(w platform.Write) bool {
	return w.Operation == freshness.Birth && w.New.GetAnnotations()[settings.CreatedByKey] == settings.CreatedByPool
}

// readNamed reads what the claim and the pool name.
func (p *Platform) readNamed(ctx context.Context, w platform.Write, m freshness.Member, guesses guesses, out *stored) error {
	g := p.group(ctx, w.Judged().GetNamespace())
	g.guesses, g.labels = guesses, out.namespace
	g.inForce(out, w, m)
	if out.claim != nil {
		g.held(out, m.Name, w.MayHold)
		g.askedBy(out, w, m)
	}
	if w.Operation == freshness.ColdStart || w.Operation == freshness.Birth {
		g.creator(out, m.Name)
	} else if node := placement.NodeName(out.pod); node != "" {
		g.getAt(&out.node, nodes, "", node)
	}
	return g.wait()
}

// inForce reads the pool that counts, where that is not the member's own, and the
// template that it or the claim refers to.
func (g *readGroup) inForce(out *stored, w platform.Write, m freshness.Member) {
	forClaim := w.Operation == freshness.ColdStart || w.Operation == freshness.WarmStart
	g.Go(func() (err error) {
		if forClaim && out.claim != nil {
			if pool := claimOf(out.claim).Pool; pool != "" {
				if out.pool, err = g.p.Get(g.ctx, Pools, g.namespace, pool); err != nil {
					return err
				}
			}
		}
		if want := templateInForce(out, forClaim); want != m.Template {
			out.template = nil
			if want != "" {
				g.get(&out.template, Templates, want)
			}
		}
		if w.Operation == freshness.WarmStart && out.pool == nil && out.pod != nil {
			if pool := bornOf(out.pod); pool != "" {
				g.get(&out.pool, Pools, pool)
			}
		}
		return nil
	})
}

// askedBy reads the pool that the claim names, when it binds what is no pool's.
func (g *readGroup) askedBy(out *stored, w platform.Write, m freshness.Member) {
	pool := claimOf(out.claim).Pool
	if w.Operation == freshness.Bind && m.Controller.Kind != freshness.OwnedByPool && pool != "" {
		g.get(&out.asked, Pools, pool)
	}
}

// enforcedBeside is what was asked for a sandbox that is no pool's any more, or
// never was: by the pool that it was made for, and by the one that the claim names.
func (s stored) enforcedBeside(sandbox *unstructured.Unstructured) string {
	if s.asked != nil && settings.Pool(s.asked.GetAnnotations()).Enforces() {
		return string(settings.Enforce)
	}
	return sandbox.GetLabels()[settings.EnforcementKey]
}

// creator leaves out the Pod of a Sandbox that is there already: a controller
// whose cache is late creates it once more, and is told so by the API server.
func (g *readGroup) creator(out *stored, sandbox string) {
	pod := out.pod
	if pod == nil || PodSandbox(pod) != sandbox {
		return
	}
	g.Go(func() error {
		owner, err := g.p.Get(g.ctx, Sandboxes, g.namespace, sandbox)
		if owner != nil && string(owner.GetUID()) == platform.ControllerUID(pod) {
			out.pod = nil
		}
		return err
	})
}

// templateInForce returns the name of the template that the pool refers to now,
// or the claim does: a claim that names a template itself gets its own sandboxes
// built from it, whatever its pool refers to (v0.4.6 and older).
func templateInForce(s *stored, forClaim bool) string {
	if s.claim != nil {
		if name := claimOf(s.claim).Template; name != "" && (forClaim || s.pool == nil) {
			return name
		}
	}
	if s.pool != nil {
		return TemplateOf(s.pool)
	}
	return ""
}

// holdings are the names under which a claim may have a sandbox: its own (cold
// starts), the one it was given, the one in its status, and more.
func holdings(claim *unstructured.Unstructured, more []string) []string {
	names := append([]string{claim.GetName()}, namesOn(claim)...)
	names = append(names, more...)
	// v0.1 and v0.2 write it with a capital N.
	for _, key := range []string{"name", "Name"} {
		if name := str(claim.Object, "status", "sandbox", key); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readGroup gets objects in parallel.
type readGroup struct {
	*errgroup.Group
	ctx       context.Context
	p         *Platform
	namespace string
	guesses   guesses
	// labels are the namespace's. Their read begins with that of what nobody guessed.
	labels platform.Namespace
	mu     sync.Mutex
}

func (p *Platform) group(ctx context.Context, namespace string) *readGroup {
	g, ctx := errgroup.WithContext(ctx)
	return &readGroup{Group: g, ctx: ctx, p: p, namespace: namespace}
}

func (g *readGroup) get(into **unstructured.Unstructured, gr schema.GroupResource, name string) {
	g.getAt(into, gr, g.namespace, name)
}

func (g *readGroup) getAt(into **unstructured.Unstructured, gr schema.GroupResource, namespace, name string) {
	g.Go(func() (err error) {
		*into, err = g.read(gr, namespace, name)
		return err
	})
}

const (
	// heldAtOnce bounds how many of the sandboxes that a claim may have are read at once:
	// each may be some MiB in memory.
	heldAtOnce = 4
	// maxMayHold bounds how many are read beside those that the claim names.
	maxMayHold = 12
)

// held reads the sandboxes that the claim may have. Anybody who writes Sandboxes makes
// the claim's UID an owner of any number of them, so not all are read: a single one that the
// claim has decides. If it has none of those that are read, the others leave it undecided.
func (g *readGroup) held(out *stored, member string, more []string) {
	more = slices.DeleteFunc(slices.Clone(more), func(name string) bool { return name == member })
	unread := max(0, len(more)-maxMayHold)
	names := holdings(out.claim, more[:len(more)-unread])
	g.Go(func() error {
		var reads errgroup.Group
		reads.SetLimit(heldAtOnce)
		for _, name := range names {
			if name != member {
				reads.Go(func() error { return g.heldAs(out, name) })
			}
		}
		err := reads.Wait()
		if err == nil && unread > 0 && len(out.held) == 0 {
			err = fmt.Errorf("looking for a sandbox of claim %s: %d may be its, at most %d are read", out.claim.GetName(), len(more), maxMayHold)
		}
		return err
	})
}

func (g *readGroup) heldAs(out *stored, name string) error {
	sandbox, err := g.read(Sandboxes, g.namespace, name)
	if sandbox == nil || sandbox.GetDeletionTimestamp() != nil {
		return err
	}
	uid := string(out.claim.GetUID())
	if slices.ContainsFunc(owners(sandbox), func(o freshness.Owner) bool { return o.UID == uid }) {
		g.mu.Lock()
		defer g.mu.Unlock()
		out.held = append(out.held, name)
	}
	return nil
}

func (g *readGroup) wait() error { return g.Wait() }

// nodeOf names the node, as read, that a Pod is on.
func nodeOf(node, pod *unstructured.Unstructured) *platform.Node {
	out := &platform.Node{Name: placement.NodeName(pod)}
	if node != nil {
		out.ResourceVersion = node.GetResourceVersion()
	}
	return out
}
