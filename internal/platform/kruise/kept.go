package kruise

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/freshbind/freshbind/internal/fields"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

var _ platform.Objects = Objects{}

// Claims is whoever has a Sandbox, by what it says itself.
func (Objects) Claims(sandbox metav1.Object) []freshness.Owner {
	if claim := claimOf(sandbox); claim.UID != "" {
		return []freshness.Owner{claim}
	}
	return nil
}

// IsPool reports whether an owner is a SandboxSet.
func (Objects) IsPool(owner *metav1.OwnerReference) bool { return isSet(owner) }

// IsMember reports whether an owner is a Sandbox.
func (Objects) IsMember(owner *metav1.OwnerReference) bool { return isSandbox(owner) }

func isSandbox(ref *metav1.OwnerReference) bool {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == schema.GroupKind{Group: Group, Kind: kindSandbox}
}

// PooledMembers selects by the label that its SandboxSet gives a member. Claims keep it:
// who owns a Sandbox is looked at besides.
func (Objects) PooledMembers() labels.Selector {
	has, err := labels.NewRequirement(poolLabel, selection.Exists, nil)
	if err != nil {
		panic("selecting by " + poolLabel + ": " + err.Error())
	}
	return labels.NewSelector().Add(*has)
}

// MembersOf selects those that say they are of one SandboxSet.
func (Objects) MembersOf(set string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{poolLabel: set})
}

// MemberPods selects the Pods that Sandboxes make. Releases that give them no such label
// have their Pods looked at only when members are judged live.
func (Objects) MemberPods() labels.Selector {
	return labels.SelectorFromSet(labels.Set{createdByLabel: createdBySandbox})
}

// PodOf is the Pod of a Sandbox's name.
func (Objects) PodOf(sandbox metav1.Object) string { return sandbox.GetName() }

// MemberOf is the name of the Sandbox that controls a Pod; "" when none does.
func (Objects) MemberOf(pod metav1.Object) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && isSandbox(owner) {
		return owner.Name
	}
	return ""
}

// DescribeMember reads what caches keep of a Sandbox. Whether one that was used may be
// used again depends on its pool, and is for the judge of binds.
func (Objects) DescribeMember(sandbox *unstructured.Unstructured) platform.Description {
	claim, pool := claimOf(sandbox), poolOf(sandbox)
	is := platform.MemberTraits{
		Controller: pool, Pooled: pool.UID != "" && claim.UID == "" && !isClaimed(sandbox) && !isLocked(sandbox) && !isReturning(sandbox),
		Used: claim.UID != "" || isClaimed(sandbox), Shown: Objects{}.IsShown(sandbox), Hideable: pool.UID != "", Template: templateRef(sandbox),
		ByReference: leavesPod(sandbox),
		Scheduler:   fields.String(sandbox.Object, "spec", "template", "spec", "schedulerName"),
		// Nobody but the Sandbox's controller may evict or delete its Pod
		// (pkg/webhook/pod/validating/pod_delete.go).
		Unevictable: fields.String(sandbox.Object, "spec", "template", "spec", "nodeName") == "",
	}
	if pool.UID == "" {
		is.Controller = claim
	}
	return platform.Description{
		MemberTraits: is, Labels: platform.OwnKeys(sandbox.GetLabels(), Group), Annotations: platform.OwnKeys(sandbox.GetAnnotations(), Group),
		PodName: sandbox.GetName(), ReadySince: readySince(sandbox),
	}
}

// isLocked: its SandboxSet is about to delete it, or somebody to take it.
func isLocked(sandbox metav1.Object) bool { return sandbox.GetAnnotations()[lockAnnotation] != "" }

// notAvailable are the phases in which nobody is given a Sandbox, whatever its conditions
// say.
var notAvailable = []string{"Pending", "Succeeded", "Failed", "Terminating"}

// readySince is when a Sandbox became ready; zero when it is not.
func readySince(sandbox *unstructured.Unstructured) time.Time {
	status, _ := sandbox.Object["status"].(map[string]any)
	if slices.Contains(notAvailable, fields.String(status, "phase")) {
		return time.Time{}
	}
	for _, c := range fields.Objects(status, "conditions") {
		if fields.String(c, "type") != "Ready" || fields.String(c, "status") != "True" {
			continue
		}
		at, err := time.Parse(time.RFC3339, fields.String(c, "lastTransitionTime"))
		if err != nil {
			return sandbox.GetCreationTimestamp().Time
		}
		return at
	}
	return time.Time{}
}

// ContentOf is what a Sandbox is built from, as far as it says so itself: one that refers to a
// template says nothing of its Pod.
func (Objects) ContentOf(sandbox *unstructured.Unstructured) (revision.Blueprint, error) {
	if leavesPod(sandbox) {
		sandbox = referring(sandbox, &unstructured.Unstructured{Object: map[string]any{}})
	}
	return contentOf(sandbox)
}

// DescribePod reads what caches keep of the Pod of a Sandbox.
func (o Objects) DescribePod(pod *unstructured.Unstructured) (sandbox string, runs *freshness.Pod, err error) {
	runs, err = platform.ReadPod(pod)
	return o.MemberOf(pod), runs, err
}

// StoredMember reads a Sandbox as it is stored now.
func (p *Platform) StoredMember(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return p.Get(ctx, Sandboxes, namespace, name)
}

// AsMember reads a Sandbox as one that somebody may take.
func (Objects) AsMember(sandbox *unstructured.Unstructured) (freshness.Member, error) {
	return stored{}.member(platform.Write{Operation: freshness.Stored, New: sandbox})
}

// AsPod reads a Pod that a Sandbox runs in.
func (Objects) AsPod(pod *unstructured.Unstructured) (*freshness.Pod, error) {
	return platform.ReadPod(pod)
}

// Inspect compares Sandboxes with their SandboxSet, or with the SandboxTemplate that it refers
// to. Nothing is said where that is not at hand, or names a node.
func (p *Platform) Inspect(ctx context.Context, set, template *unstructured.Unstructured) (*platform.Inspection, error) {
	return p.inspect(ctx, set, template, p.NamespaceLabels)
}

// CachedInspector inspects as Platform does, but for labels of namespaces, which it
// takes from a cache.
type CachedInspector struct {
	*Platform
	Cached platform.NamespaceLabels
}

// Inspect is that of Platform.
func (c CachedInspector) Inspect(ctx context.Context, set, template *unstructured.Unstructured) (*platform.Inspection, error) {
	return c.inspect(ctx, set, template, c.Cached)
}

func (p *Platform) inspect(ctx context.Context, set, template *unstructured.Unstructured, labels platform.NamespaceLabels) (*platform.Inspection, error) {
	f := platform.Facts{Snapshot: freshness.Snapshot{Operation: freshness.Stored}}
	namespace := platform.StartNamespace(ctx, set.GetNamespace(), labels)
	objs := stored{set: set}
	if objs.refers() && template != nil && template.GetKind() == kindTemplate && !isPinned(template) {
		objs.template = template
	}
	if err := p.poolInto(ctx, &f, namespace, platform.Write{Operation: freshness.Stored}, objs); err != nil {
		return nil, err
	}
	if objs.template != nil {
		var err error
		if f.PodInjected, err = platform.PodInjections(nil, f.Injected, volumePaths(set)...); err != nil {
			return nil, err
		}
	}
	annotations := settings.Pool(set.GetAnnotations())
	if isLeftToItself(set) {
		// Nobody asked Freshbind to roll it: the platform does, in its own way.
		f.Pool.Strategy = freshness.PlatformOwned
	}
	return platform.NewInspection(p, f.Snapshot, annotations[settings.InjectedPathsKey]), nil
}

// isLeftToItself reports whether nobody asked Freshbind to roll a SandboxSet. Its stale
// members are refused all the same.
func isLeftToItself(set metav1.Object) bool { return set.GetAnnotations()[settings.StrategyKey] == "" }
