package kruise

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fields"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/platform"
)

// stored are the objects as they are in etcd now; nil says absent.
type stored struct {
	set, template, claim, pod, node *unstructured.Unstructured
	// held are the Sandboxes, other than the written one, that the claim has, once it may
	// have no more.
	held []string
}

// inForce is what members are built from; nil when that does not exist.
func (s stored) inForce() *unstructured.Unstructured {
	if !s.refers() {
		return s.set
	}
	if s.template == nil {
		return nil
	}
	return referring(s.set, s.template)
}

// refers reports whether the SandboxSet refers to a template.
func (s stored) refers() bool { return s.set != nil && templateRef(s.set) != "" }

// read gets what the write names, and then what only that names.
func (p *Platform) read(ctx context.Context, w platform.Write) (stored, error) {
	var out stored
	sandbox := w.Judged()
	namespace := sandbox.GetNamespace()
	g, inner := errgroup.WithContext(ctx)
	if name := poolNameOf(w); name != "" {
		g.Go(func() (err error) {
			out.set, err = p.Get(inner, Sets, namespace, name)
			return err
		})
	}
	if w.Operation != freshness.Birth && sandbox.GetName() != "" {
		g.Go(func() (err error) {
			out.pod, err = p.Get(inner, pods, namespace, sandbox.GetName())
			return err
		})
	}
	if hint, isClaim := w.New.GetLabels()[claimNameLabel]; isClaim && w.Claim.UID != "" {
		g.Go(func() (err error) {
			out.claim, err = p.claim(inner, namespace, hint, w.Claim.UID)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return stored{}, err
	}
	if err := p.readNamed(ctx, w, &out); err != nil {
		return stored{}, err
	}
	return out, nil
}

// poolNameOf is the SandboxSet that a Sandbox is, or was, a member of, or that a cold
// start says it is made from.
func poolNameOf(w platform.Write) string {
	switch w.Operation {
	case freshness.ColdStart:
		return w.New.GetLabels()[poolLabel]
	case freshness.Return:
		return backTo(w.New).Name
	}
	return poolOf(w.Judged()).Name
}

// backTo is the SandboxSet that has a used Sandbox again; of one that it has not, the one
// that it came from.
func backTo(sandbox metav1.Object) freshness.Owner {
	if pool := poolOf(sandbox); pool.UID != "" {
		return pool
	}
	return freshness.Owner{Kind: freshness.OwnedByPool, Name: sandbox.GetLabels()[poolLabel]}
}

// readNamed reads what pool, Pod and claim name.
func (p *Platform) readNamed(ctx context.Context, w platform.Write, out *stored) error {
	namespace := w.Judged().GetNamespace()
	// The claim is the one to say what it is to have; its labels can say another thing.
	if asks := poolAsked(out.claim); w.Operation == freshness.ColdStart && asks != "" && asks != poolNameOf(w) {
		set, err := p.Get(ctx, Sets, namespace, asks)
		if err != nil {
			return err
		}
		out.set = set
	}
	g, inner := errgroup.WithContext(ctx)
	if out.refers() {
		g.Go(func() (err error) {
			out.template, err = p.Get(inner, Templates, namespace, templateRef(out.set))
			return err
		})
	}
	if out.pod != nil && placement.NodeName(out.pod) != "" {
		g.Go(func() (err error) {
			out.node, err = p.Get(inner, nodes, "", placement.NodeName(out.pod))
			return err
		})
	}
	if out.claim != nil {
		g.Go(func() (err error) {
			out.held, err = p.held(inner, w, out.claim)
			return err
		})
	}
	return g.Wait()
}

// claim returns the SandboxClaim of a UID. Labels of the claim's own may have replaced the
// one with its name, and then it is looked for. Without one of that UID it is what has
// the name, if anything.
func (p *Platform) claim(ctx context.Context, namespace, hint, uid string) (*unstructured.Unstructured, error) {
	var named *unstructured.Unstructured
	var err error
	if hint != "" {
		named, err = p.Get(ctx, Claims, namespace, hint)
	}
	if err != nil || named != nil && string(named.GetUID()) == uid {
		return named, err
	}
	gvr, err := p.Resolver.Resource(ctx, Claims)
	if err != nil {
		return nil, fmt.Errorf("finding the served version of %s: %w", Claims, err)
	}
	found, err := p.ByUID.Get(ctx, liveread.Ref{GVR: gvr, Namespace: namespace, Name: uid})
	if liveread.IsAbsent(err) {
		return named, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the sandboxclaim with UID %s: %w", uid, err)
	}
	return p.Get(ctx, Claims, namespace, found.GetName())
}

// poolAsked is the SandboxSet that a SandboxClaim wants a member of; "" without a claim.
func poolAsked(claim *unstructured.Unstructured) string {
	if claim == nil {
		return ""
	}
	return fields.String(claim.Object, "spec", "templateName")
}

// held returns what a claim has, if that is all that it may have. It counts what it may
// have by what is remembered, which is read live, and by the claim's own status.
func (p *Platform) held(ctx context.Context, w platform.Write, claim *unstructured.Unstructured) ([]string, error) {
	g, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	var held []string
	for _, name := range w.MayHold {
		if name == w.Judged().GetName() {
			continue
		}
		g.Go(func() error {
			other, err := p.Get(ctx, Sandboxes, w.Judged().GetNamespace(), name)
			if err == nil && other != nil && other.GetDeletionTimestamp() == nil && poolOf(other).UID == "" && claimOf(other).UID == w.Claim.UID {
				mu.Lock()
				defer mu.Unlock()
				held = append(held, name)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	wants, found, _ := unstructured.NestedInt64(claim.Object, "spec", "replicas")
	if !found {
		wants = 1
	}
	if counted, _, _ := unstructured.NestedInt64(claim.Object, "status", "claimedReplicas"); counted >= wants && len(held) == 0 {
		return []string{fmt.Sprintf("number %d, by its status", counted)}, nil
	}
	if int64(len(held)) < wants {
		return nil, nil
	}
	return held, nil
}
