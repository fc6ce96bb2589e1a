package agentsandbox

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

// Objects reads objects of agent-sandbox, and needs no cluster for it.
type Objects struct{}

var _ platform.Objects = Objects{}

// Kinds are those of agent-sandbox.
func (Objects) Kinds() platform.Kinds {
	kind := func(kind string, gr schema.GroupResource, short ...string) platform.Kind {
		return platform.Kind{GroupKind: schema.GroupKind{Group: gr.Group, Kind: kind}, Resource: gr.Resource, ShortNames: short}
	}
	return platform.Kinds{
		Member: kind(kindSandbox, Sandboxes), Claim: kind(kindClaim, Claims), Template: kind(kindTemplate, Templates), Pool: kind(kindPool, Pools, "swp"),
		Product: Name + " with its extensions", Versions: Versions,
	}
}

// Claims are the claims among the owners of a Sandbox.
func (Objects) Claims(sandbox metav1.Object) []freshness.Owner { return ClaimsOf(sandbox) }

// IsWaiting reports whether a claim has no Sandbox yet.
func (Objects) IsWaiting(claim *unstructured.Unstructured) bool {
	return str(claim.Object, "status", "sandbox", "name") == ""
}

// IsPool reports whether an owner is a pool.
func (Objects) IsPool(owner *metav1.OwnerReference) bool { return IsPoolOwner(owner) }

// IsMember reports whether an owner is a Sandbox.
func (Objects) IsMember(owner *metav1.OwnerReference) bool { return IsSandboxOwner(owner) }

// PooledMembers selects the Sandboxes that were made for pools, until they are bound.
func (Objects) PooledMembers() labels.Selector { return having(WarmPoolLabel) }

// MembersOf selects those of one pool.
func (Objects) MembersOf(pool string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{WarmPoolLabel: NameHash(pool)})
}

// MemberPods selects the Pods of Sandboxes.
func (Objects) MemberPods() labels.Selector { return having(PodSandboxLabel) }

// having selects what has a label. The labels are constants of this package, and names
// that the API server takes.
func having(label string) labels.Selector {
	has, err := labels.NewRequirement(label, selection.Exists, nil)
	if err != nil {
		panic("selecting by " + label + ": " + err.Error())
	}
	return labels.NewSelector().Add(*has)
}

// PodOf is the name of the Pod that a Sandbox runs in, by what it says.
func (Objects) PodOf(sandbox metav1.Object) string { return PodNameOf(sandbox) }

// IsShown reports whether the claim controller does not pass a Sandbox over.
func (Objects) IsShown(sandbox metav1.Object) bool { return Shown(sandbox) }

// MemberOf is the name of the Sandbox that controls a Pod; "" when none does.
func (Objects) MemberOf(pod metav1.Object) string { return PodSandbox(pod) }

// Pool reads a pool.
func (Objects) Pool(pool *unstructured.Unstructured) platform.Pool {
	return platform.Pool{Template: TemplateOf(pool), Replicas: Replicas(pool), Recreates: Recreates(pool)}
}

// Render is RenderMember.
func (Objects) Render(template *unstructured.Unstructured) (revision.Blueprint, error) {
	return RenderMember(template)
}

// Hide is HidePatch.
func (Objects) Hide(sandbox platform.Version) []byte { return HidePatch(sandbox) }

// Show is ShowPatch.
func (Objects) Show(sandbox platform.Version) []byte { return ShowPatch(sandbox) }

// Offer is OfferPatch.
func (Objects) Offer(sandbox *unstructured.Unstructured) (patch []byte, ok bool) {
	return OfferPatch(sandbox)
}

// BarePods is about the members of v0.1 and v0.2.
type BarePods struct{}

var (
	_ platform.BarePods     = BarePods{}
	_ platform.ReleasedPods = BarePods{}
)

// HasBarePods reports whether pools of this version may have members that are Pods:
// those releases serve no other.
func (BarePods) HasBarePods(pools schema.GroupVersion) bool { return pools.Version == BarePodVersion }

// BarePodsOf selects the Pods of a pool.
func (BarePods) BarePodsOf(pool string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{PodPoolLabel: NameHash(pool)})
}

// WasMember is the function of that name.
func (BarePods) WasMember(pod *unstructured.Unstructured, pool *freshness.Pool) bool {
	return WasMember(pod, pool)
}

// TakenFor is the UID that v0.2.1 writes onto a Pod.
func (BarePods) TakenFor(pod metav1.Object) string { return pod.GetLabels()[PodClaimLabel] }
