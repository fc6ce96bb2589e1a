package agentsandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Platform reads what a verdict depends on. Reader, ByUID, Resolver, History and
// Defaults have to be set.
type Platform struct {
	Objects

	Reader platform.Reader
	// ByUID reads an object whose UID the Ref names in place of a name.
	ByUID    platform.Reader
	Resolver platform.Resolver
	History  platform.History
	Defaults settings.Defaults
	// SchedulerName is the one that members' Pods may be sent to whatever their
	// templates say of it, which is nothing; "" for none.
	SchedulerName string
	// RepairOff: stale cold starts are refused, not repaired, whatever pools say.
	RepairOff bool

	// CachedNode is the node that a cache shows a Pod on, "" for none. It may be late:
	// it is only a guess at what has to be read. nil for no guess.
	CachedNode func(namespace, pod string) string
	// Turns shares the CPU that snapshots take between namespaces; nil for no
	// bound.
	Turns *fair.Turns

	memo  Memo
	paths pathsMemo
}

// Get returns an object as it is stored now; nil when it does not exist, and with
// an error: it could not be read.
func (p *Platform) Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error) {
	return p.stored().Get(ctx, gr, namespace, name)
}

func (p *Platform) stored() platform.Stored {
	return platform.Stored{Reader: p.Reader, Resolver: p.Resolver}
}

// NamespaceLabels reads the labels of a namespace as it is stored now; none when it
// does not exist.
func (p *Platform) NamespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	return p.stored().NamespaceLabels(ctx, name)
}

// Snapshot reads, in parallel, everything that the verdict on w depends on.
// An error means that something could not be read or understood.
func (p *Platform) Snapshot(ctx context.Context, w platform.Write) (platform.Facts, error) {
	namespace := p.namespaceFor(ctx, w)
	w, err := p.asServed(ctx, w)
	if err != nil {
		return platform.Facts{Namespace: namespace}, err
	}
	f, err := p.snapshotIn(ctx, namespace, w)
	f.Namespace = namespace
	return f, err
}

// asServed: where no members are bare Pods, a Sandbox that names a Pod when it is created is
// a cold start like any other, which must not take that Pod over.
func (p *Platform) asServed(ctx context.Context, w platform.Write) (platform.Write, error) {
	if w.Operation != freshness.WarmStart {
		return w, nil
	}
	gvr, err := p.Resolver.Resource(ctx, Pools)
	if err != nil {
		return w, fmt.Errorf("finding the served version of %s: %w", Pools, err)
	}
	if !(BarePods{}).HasBarePods(gvr.GroupVersion()) {
		w.Operation = freshness.ColdStart
	}
	return w, nil
}

// slowReads is when reads take so long that they may fail: a healthy round takes a few
// milliseconds.
const slowReads = 100 * time.Millisecond

// namespaceFor reads the namespace of a bind only when it is needed: never for a fresh
// one, unless strategies have floors.
func (p *Platform) namespaceFor(ctx context.Context, w platform.Write) platform.Namespace {
	if w.Operation != freshness.Bind || p.Defaults.Floors.HasStrategy() {
		return p.startNamespace(ctx, w.Judged())
	}
	return platform.LaterNamespace(ctx, w.Judged().GetNamespace(), p.NamespaceLabels, slowReads)
}

// startNamespace reads an object's namespace beside everything else.
func (p *Platform) startNamespace(ctx context.Context, obj *unstructured.Unstructured) platform.Namespace {
	return platform.StartNamespace(ctx, obj.GetNamespace(), p.NamespaceLabels)
}

func (p *Platform) snapshotIn(ctx context.Context, namespace platform.Namespace, w platform.Write) (platform.Facts, error) {
	switch {
	case IsPod(w.Judged()):
		return p.barePodSnapshot(ctx, namespace, w)
	case w.Operation == freshness.ForeignController:
		return p.foreignController(ctx, w)
	}
	f, _, err := p.sandboxSnapshot(ctx, namespace, w)
	return f, err
}

// sandboxSnapshot returns what was read, too.
func (p *Platform) sandboxSnapshot(ctx context.Context, namespace platform.Namespace, w platform.Write) (platform.Facts, stored, error) {
	member, err := memberOf(w)
	if err != nil {
		return platform.Facts{}, stored{}, err
	}
	objs, err := p.read(ctx, namespace, w, member)
	if err != nil {
		return platform.Facts{}, stored{}, err
	}
	done, err := p.Turns.Take(ctx, w.Judged().GetNamespace())
	if err != nil {
		return platform.Facts{}, stored{}, err
	}
	defer done()
	f, err := p.snapshotOf(ctx, w, member, objs)
	return f, objs, err
}

// snapshotOf makes a snapshot of what was read.
func (p *Platform) snapshotOf(ctx context.Context, w platform.Write, member freshness.Member, objs stored) (platform.Facts, error) {
	var err error
	f := platform.Facts{Snapshot: freshness.Snapshot{
		Operation: w.Operation,
		Member:    member,
		ClaimRef:  w.Claim,
		Besides:   besides(w),
		Held:      objs.held,
		Injected:  p.paths.injected(objs.pool),
	}}
	if f.PodInjected, err = p.podInjections(w.Judged(), objs.pod, f.Injected); err != nil {
		return platform.Facts{}, err
	}
	if objs.claim != nil {
		f.Claim = claimOf(objs.claim)
		f.AlwaysCold = alwaysCold(objs.claim)
	}
	if objs.pool != nil {
		least, err := p.leastStrategy(objs.namespace.Labels)
		if err != nil {
			return platform.Facts{}, err
		}
		f.Pool = p.poolOf(objs.pool, least)
		f.Enforcement = objs.pool.GetAnnotations()[settings.EnforcementKey]
	} else if w.Operation == freshness.Bind {
		f.Enforcement = objs.enforcedBeside(w.Judged())
	}
	if w.Operation == freshness.WarmStart {
		f.Taken = objs.pod
	}
	if objs.pod != nil {
		if f.Pod, err = podOf(objs.pod); err != nil {
			return platform.Facts{}, err
		}
		if placement.NodeName(objs.pod) != "" && w.Operation != freshness.ColdStart && w.Operation != freshness.Birth {
			f.Pod.NodeLeaving = placement.NodeState(objs.node).Leaving(placement.Tolerations(objs.pod))
			f.Node = nodeOf(objs.node, objs.pod)
		}
	}
	if objs.template != nil {
		if err := p.renderInto(ctx, &f, objs); err != nil {
			return platform.Facts{}, err
		}
	}
	return f, nil
}

// renderInto renders the template in force, and those it followed, for the
// operation.
func (p *Platform) renderInto(ctx context.Context, f *platform.Facts, objs stored) error {
	asMember, err := p.memo.Render(objs.template)
	if err != nil {
		return err
	}
	f.Template = &freshness.Template{Name: objs.template.GetName(), Hash: asMember.Hash(), Content: asMember}
	cold := (f.Operation == freshness.ColdStart || f.Operation == freshness.WarmStart) && objs.claim != nil
	if cold {
		content, err := renderCold(objs.template, objs.claim)
		var refused *unrenderableError
		if errors.As(err, &refused) {
			f.Template.Unrenderable = refused.why
		} else if err != nil {
			return err
		}
		f.Template.Content = content
	}
	// v0.1.0 marks no Sandbox with its claim, and adds no secure defaults.
	if f.Operation == freshness.WarmStart || cold && !f.Member.Used {
		plain, err := p.renderPlain(ctx, objs.template)
		if err != nil {
			return err
		}
		f.Plain = &plain
	}
	var coldFor *unstructured.Unstructured
	if cold {
		coldFor = objs.claim
	}
	f.Known, err = p.known(ctx, objs.template, coldFor)
	return err
}

// known renders the template's recorded revisions: as members, or as cold starts
// of a claim.
func (p *Platform) known(ctx context.Context, template, claim *unstructured.Unstructured) ([]freshness.Known, error) {
	recorded, err := p.History.Revisions(ctx, template)
	if err != nil {
		return nil, fmt.Errorf("reading history of template %s: %w", template.GetName(), err)
	}
	var out []freshness.Known
	for _, r := range recorded {
		k := freshness.Known{Hash: r.Hash, Content: r.Rendered}
		if claim != nil && r.Template != nil {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if k.Content, err = renderCold(r.Template, claim); err != nil {
				continue
			}
		}
		out = append(out, k)
	}
	return out, nil
}
