package exampleplatform

import (
	"context"
	"encoding/json"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/manager"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

// PodLabel is on the Pod of every Box.
const PodLabel = Group + "/box"

// Kept is Guarded, with Fleets that Freshbind's controllers keep current. Nobody takes a
// Pod itself, and claims have no object, so that there is nothing else to look after.
func Kept() *manager.Guarded {
	update := func(resource string) admissionregistrationv1.RuleWithOperations {
		return platform.On(Group, "*", resource, admissionregistrationv1.Update)
	}
	g := Guarded()
	g.Kept = Objects{}
	g.Admission.Own.Marked = []admissionregistrationv1.RuleWithOperations{update(Boxes.Resource), update(Fleets.Resource)}
	g.Admission.Own.Idle = wasOwned + ` && ` + oldClaim + ` == ''`
	g.Connect = func(s manager.Sources) manager.Connected {
		p := &Platform{Sources: s}
		return manager.Connected{Guard: p, Keep: &manager.Keep{Platform: p, Cached: p}}
	}
	return g
}

var (
	_ platform.Objects     = Objects{}
	_ manager.KeptPlatform = (*Platform)(nil)
)

// Claims is whoever has a Box.
func (Objects) Claims(box metav1.Object) []freshness.Owner {
	if claim := claimOf(box); claim.UID != "" {
		return []freshness.Owner{claim}
	}
	return nil
}

// IsPool reports whether an owner is a Fleet.
func (Objects) IsPool(owner *metav1.OwnerReference) bool { return isFleet(*owner) }

// IsMember reports whether an owner is a Box.
func (Objects) IsMember(owner *metav1.OwnerReference) bool { return isBox(*owner) }

// PooledMembers are not told by labels: who owns a Box is looked at in any case.
func (Objects) PooledMembers() labels.Selector { return labels.Everything() }

// MembersOf is the same.
func (Objects) MembersOf(string) labels.Selector { return labels.Everything() }

// MemberPods selects the Pods of Boxes.
func (Objects) MemberPods() labels.Selector {
	return labels.SelectorFromSet(labels.Set{PodLabel: "true"})
}

// PodOf is the Pod of a Box's name.
func (Objects) PodOf(box metav1.Object) string { return box.GetName() }

// IsShown is true: nothing hides a Box.
func (Objects) IsShown(metav1.Object) bool { return true }

// MemberOf is the Box that a Pod belongs to.
func (Objects) MemberOf(pod metav1.Object) string { return boxOf(pod) }

// Hide leaves a Box as it is, and so does Show.
func (Objects) Hide(box platform.Version) []byte { return untouched(box) }

// Show is Hide.
func (Objects) Show(box platform.Version) []byte { return untouched(box) }

// Offer has no patch: whoever wants a Box looks at all there are.
func (Objects) Offer(*unstructured.Unstructured) (patch []byte, ok bool) { return nil, false }

func untouched(box platform.Version) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": box.GetUID(), "resourceVersion": box.GetResourceVersion()}})
	if err != nil {
		panic("marshalling strings: " + err.Error())
	}
	return patch
}

// DescribeMember reads what caches keep of a Box.
func (Objects) DescribeMember(box *unstructured.Unstructured) platform.Description {
	has, fleet := claimOf(box), fleetOf(box)
	is := platform.MemberTraits{Controller: fleet, Pooled: fleet.UID != "" && has.UID == "", Used: has.UID != "", Shown: true}
	if fleet.UID == "" {
		is.Controller = has
	}
	return platform.Description{
		MemberTraits: is, Labels: platform.OwnKeys(box.GetLabels(), Group), Annotations: platform.OwnKeys(box.GetAnnotations(), Group),
		PodName: box.GetName(), ReadySince: readySince(box),
	}
}

// readySince is when a Box became ready; zero when it is not.
func readySince(box *unstructured.Unstructured) time.Time {
	readySince, _, _ := unstructured.NestedString(box.Object, "status", "readySince")
	at, err := time.Parse(time.RFC3339, readySince)
	if err != nil {
		return time.Time{}
	}
	return at
}

// ContentOf is what a Box is built from.
func (Objects) ContentOf(box *unstructured.Unstructured) (revision.Blueprint, error) {
	return contentOf(box)
}

// DescribePod reads what caches keep of a Box's Pod.
func (Objects) DescribePod(pod *unstructured.Unstructured) (box string, runs *freshness.Pod, err error) {
	runs, err = platform.ReadPod(pod)
	return boxOf(pod), runs, err
}

// Inspect compares Boxes with a Fleet as it is as pool, and as it is as template.
func (p *Platform) Inspect(ctx context.Context, pool, template *unstructured.Unstructured) (*platform.Inspection, error) {
	f := platform.Facts{Snapshot: freshness.Snapshot{Operation: freshness.Stored}}
	injected := poolInto(&f, pool)
	if template != nil {
		if err := p.renderInto(ctx, &f, template); err != nil {
			return nil, err
		}
	}
	return platform.NewInspection(p, f.Snapshot, injected), nil
}

// StoredMember reads a Box as it is stored now.
func (p *Platform) StoredMember(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return p.Get(ctx, Boxes, namespace, name)
}

// AsMember reads a Box as one that somebody may take.
func (Objects) AsMember(box *unstructured.Unstructured) (freshness.Member, error) {
	return memberOf(platform.Write{Operation: freshness.Stored, New: box})
}

// AsPod reads a Pod that a Box runs in.
func (Objects) AsPod(pod *unstructured.Unstructured) (*freshness.Pod, error) {
	return platform.ReadPod(pod)
}
