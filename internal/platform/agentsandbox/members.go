package agentsandbox

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

// DescribeMember reads what caches keep of a Sandbox.
func (Objects) DescribeMember(sandbox *unstructured.Unstructured) platform.Description {
	labels, annotations := sandbox.GetLabels(), sandbox.GetAnnotations()
	return platform.Description{
		MemberTraits: platform.MemberTraits{
			Controller: controllerOf(sandbox), Pooled: labels[WarmPoolLabel] != "", Used: wasClaimed(sandbox),
			Shown: labels[TemplateRefHashLabel] != "", Hideable: Hideable(sandbox),
			NamedFirst: labels[podTemplateHashLabel] != "", Template: annotations[templateRefAnnotation],
			Scheduler: str(sandbox.Object, "spec", "podTemplate", "spec", "schedulerName"),
		},
		Labels:      platform.OwnKeys(labels, CoreGroup, ExtensionsGroup),
		Annotations: platform.OwnKeys(annotations, CoreGroup, ExtensionsGroup),
		PodName:     PodNameOf(sandbox), PodNameKey: podNameAnnotation,
		ReadySince: ReadySince(sandbox),
	}
}

// ContentOf returns what a Sandbox is built from.
func (Objects) ContentOf(sandbox *unstructured.Unstructured) (revision.Blueprint, error) {
	return ContentOf(sandbox)
}

// DescribePod reads what caches keep of the Pod of a Sandbox.
func (Objects) DescribePod(pod *unstructured.Unstructured) (sandbox string, runs *freshness.Pod, err error) {
	runs, err = podOf(pod)
	return PodSandbox(pod), runs, err
}

// StoredMember reads a Sandbox as it is stored now.
func (p *Platform) StoredMember(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return p.Get(ctx, Sandboxes, namespace, name)
}

// AsMember reads a Sandbox as one that somebody may take.
func (Objects) AsMember(sandbox *unstructured.Unstructured) (freshness.Member, error) {
	return memberOf(platform.Write{Operation: freshness.Stored, New: sandbox})
}

// AsPod reads a Pod that a Sandbox runs in.
func (Objects) AsPod(pod *unstructured.Unstructured) (*freshness.Pod, error) { return podOf(pod) }
