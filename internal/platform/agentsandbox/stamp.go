package agentsandbox

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// SandboxRevision returns the revision that a Sandbox, about to be created, is
// built from, by its own content.
func (p *Platform) SandboxRevision(ctx context.Context, sandbox *unstructured.Unstructured) (platform.Stamp, error) {
	f, err := p.Snapshot(ctx, asIfCreated(sandbox))
	if err != nil {
		return platform.Stamp{}, fmt.Errorf("finding the revision of sandbox %s: %w", sandbox.GetName(), err)
	}
	hash, err := p.attribute(ctx, sandbox.GetNamespace(), f, freshness.RevisionWithin)
	return platform.Stamp{Hash: hash, Enforcement: f.Enforcement}, err
}

// NewSandbox returns what a Sandbox, about to be created, has to say of itself, and
// what it has to be rewritten to.
func (p *Platform) NewSandbox(ctx context.Context, sandbox *unstructured.Unstructured) (platform.Stamp, error) {
	namespace := p.startNamespace(ctx, sandbox)
	stamp, err := p.newSandbox(ctx, namespace, sandbox)
	stamp.Namespace = namespace
	return stamp, err
}

func (p *Platform) newSandbox(ctx context.Context, namespace platform.Namespace, sandbox *unstructured.Unstructured) (platform.Stamp, error) {
	f, objs, err := p.sandboxSnapshot(ctx, namespace, asIfCreated(sandbox))
	if err != nil {
		return platform.Stamp{}, fmt.Errorf("finding the revision of sandbox %s: %w", sandbox.GetName(), err)
	}
	stamp := platform.Stamp{Enforcement: f.Enforcement, BoundTo: f.ClaimRef.UID}
	done, err := p.Turns.Take(ctx, sandbox.GetNamespace())
	if err != nil {
		return stamp, err
	}
	defer done()
	if stamp.Hash, err = freshness.RevisionWithin(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err)); err != nil {
		return stamp, err
	}
	stamp.Repaired = platform.RepairNote(sandbox, f, stamp.Hash)
	if namesBarePod(sandbox) {
		return stamp, nil
	}
	if stamp.Repair, err = p.repair(ctx, sandbox, f, objs); stamp.Repair != nil {
		stamp.Hash, stamp.Repaired = stamp.Repair.To, stamp.Repair.Note()
	}
	if err != nil || stamp.Repair != nil || f.Operation != freshness.ColdStart {
		return stamp, err
	}
	v, err := freshness.JudgeWithin(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
	if err == nil && !v.Allowed {
		stamp.Refused, stamp.Question = &v, p.Question(asIfCreated(sandbox))
	}
	return stamp, err
}

// Question names all that the verdict on a cold start depends on in the object
// itself. What the API server adds to it between the webhooks does not count.
func (*Platform) Question(w platform.Write) platform.Question {
	m, err := memberOf(w)
	if err != nil {
		// What has no content has no verdict, and nobody asks for it.
		return platform.Question{}
	}
	content := m.Content.JSON()
	m.Content, m.Proposed = revision.Blueprint{}, revision.Blueprint{}
	m.UID, m.Generation, m.Created = "", 0, time.Time{}
	return platform.Digest(w.Operation, w.Judged().GetNamespace(), w.Claim, besides(w), m, content)
}

// PodRevision returns the revision that a Pod is built from, by its own
// content; none when neither a Sandbox nor a pool has it.
func (p *Platform) PodRevision(ctx context.Context, pod *unstructured.Unstructured) (platform.Stamp, error) {
	namespace := p.startNamespace(ctx, pod)
	find := p.podRevision
	if controllerOf(pod).Kind == freshness.OwnedByPool {
		find = p.barePodRevision
	}
	stamp, err := find(ctx, namespace, pod)
	stamp.Namespace = namespace
	return stamp, err
}

func (p *Platform) podRevision(ctx context.Context, namespace platform.Namespace, pod *unstructured.Unstructured) (platform.Stamp, error) {
	var name string
	for _, ref := range pod.GetOwnerReferences() {
		if IsSandbox(groupKind(ref.APIVersion, ref.Kind)) {
			name = ref.Name
		}
	}
	if name == "" {
		return platform.Stamp{}, nil
	}
	sandbox, err := p.Get(ctx, Sandboxes, pod.GetNamespace(), name)
	if err != nil {
		return platform.Stamp{}, err
	}
	own, err := podOf(pod)
	if err != nil {
		return platform.Stamp{}, err
	}
	if sandbox == nil {
		return platform.Stamp{Hash: own.Content.Hash()}, nil
	}
	if stamp, err := p.asItsSandbox(ctx, sandbox, pod, own); err != nil || stamp != nil {
		return ptr.Deref(stamp, platform.Stamp{}), err
	}
	f, _, err := p.sandboxSnapshot(ctx, namespace, asIfCreated(sandbox))
	if err != nil {
		return platform.Stamp{}, fmt.Errorf("finding the revision of pod %s: %w", pod.GetName(), err)
	}
	f.Pod = own
	if f.PodInjected, err = p.podInjections(sandbox, pod, f.Injected); err != nil {
		return platform.Stamp{}, err
	}
	hash, err := p.attribute(ctx, pod.GetNamespace(), f, freshness.PodRevisionWithin)
	return platform.Stamp{
		Hash: hash, Enforcement: f.Enforcement,
		Sendable: f.Member.Controller.Kind == freshness.OwnedByPool && !NamesScheduler(sandbox),
	}, err
}

// asItsSandbox is the stamp of a Pod that is what its Sandbox says, where that has been
// stamped and says what it did then; nil for any other. It reads nothing more.
func (p *Platform) asItsSandbox(ctx context.Context, sandbox, pod *unstructured.Unstructured, own *freshness.Pod) (*platform.Stamp, error) {
	hash := sandbox.GetLabels()[settings.StampKey]
	if hash == "" || sandbox.GetGeneration() != 1 {
		return nil, nil
	}
	s := freshness.Snapshot{Pod: own}
	var err error
	if s.Member, err = memberOf(asIfCreated(sandbox)); err != nil {
		return nil, err
	}
	if s.PodInjected, err = p.podInjections(sandbox, pod, revision.PathSet{}); err != nil {
		return nil, err
	}
	done, err := p.Turns.Take(ctx, sandbox.GetNamespace())
	if err != nil {
		return nil, err
	}
	defer done()
	as, err := freshness.PodMatchesMemberWithin(s, revision.NewBudget(freshness.MaxWork, ctx.Err))
	if !as {
		return nil, err
	}
	return &platform.Stamp{
		Hash: hash, Enforcement: sandbox.GetLabels()[settings.EnforcementKey],
		Sendable: s.Member.Controller.Kind == freshness.OwnedByPool && !NamesScheduler(sandbox),
	}, nil
}

// attribute names a revision when it is the namespace's turn.
func (p *Platform) attribute(ctx context.Context, namespace string, f platform.Facts, find func(freshness.Snapshot, *revision.Budget) (string, error)) (string, error) {
	done, err := p.Turns.Take(ctx, namespace)
	if err != nil {
		return "", err
	}
	defer done()
	return find(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
}

// asIfCreated describes a Sandbox by how it came to be: for its claim, or for
// its pool.
func asIfCreated(sandbox *unstructured.Unstructured) platform.Write {
	w := platform.Write{Operation: freshness.Birth, New: sandbox, ContentOnly: true}
	if owner := controllerOf(sandbox); owner.Kind == freshness.OwnedByClaim {
		w.Operation, w.Claim = freshness.ColdStart, owner
	}
	return w
}
