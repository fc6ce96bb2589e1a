package kruise

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

// PodRevision names the revision that a Pod is built from, by its own content: where its
// Sandbox refers to a template nothing else shows it, and it can be another one after each
// resume. None where no Sandbox has it, or that is of no SandboxSet.
func (p *Platform) PodRevision(ctx context.Context, pod *unstructured.Unstructured) (platform.Stamp, error) {
	stamp := platform.Stamp{Namespace: platform.StartNamespace(ctx, pod.GetNamespace(), p.NamespaceLabels)}
	name := p.MemberOf(pod)
	if name == "" {
		return stamp, nil
	}
	sandbox, err := p.Get(ctx, Sandboxes, pod.GetNamespace(), name)
	if err != nil || sandbox == nil || platform.ControllerUID(pod) != string(sandbox.GetUID()) {
		return stamp, err
	}
	w := platform.Write{Operation: freshness.Birth, New: sandbox}
	if poolOf(sandbox).UID == "" {
		w.Operation, w.Claim = freshness.ColdStart, claimOf(sandbox)
	}
	f, objs, err := p.readAll(ctx, w)
	stamp.Namespace, stamp.Enforcement = f.Namespace, f.Enforcement
	if err != nil || f.Template == nil {
		return stamp, err
	}
	if f.Pod, err = platform.ReadPod(pod); err != nil {
		return stamp, err
	}
	if f.PodInjected, err = platform.PodInjections(pod, f.Injected, volumePaths(sandbox, objs.inForce())...); err != nil {
		return stamp, err
	}
	done, err := p.Turns.Take(ctx, pod.GetNamespace())
	if err != nil {
		return stamp, err
	}
	defer done()
	stamp.Hash, err = podRevision(ctx, f.Snapshot, sandbox)
	return stamp, err
}

// podRevision is that of the Sandbox where the Pod is what that says, with all that its claim
// asked to have changed.
func podRevision(ctx context.Context, s freshness.Snapshot, sandbox *unstructured.Unstructured) (string, error) {
	budget := revision.NewBudget(freshness.MaxWork, ctx.Err)
	if !leavesPod(sandbox) {
		content, err := contentOf(sandbox)
		if err != nil {
			return "", err
		}
		own := s
		own.Member.Content = content
		as, err := freshness.PodMatchesMemberWithin(own, budget)
		if err != nil {
			return "", err
		}
		if as {
			return freshness.RevisionWithin(s, budget)
		}
	}
	return freshness.PodRevisionWithin(s, budget)
}
