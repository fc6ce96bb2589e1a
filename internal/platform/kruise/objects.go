package kruise

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/fields"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

// Objects says which kinds the platform has, and reads its pools; it needs no cluster.
type Objects struct{}

// Kinds are those without which there is nothing to guard. Not every claim has an
// object, so there is no kind of claims; events are on members and pools.
func (Objects) Kinds() platform.Kinds {
	set := platform.Kind{GroupKind: schema.GroupKind{Group: Group, Kind: kindSet}, Resource: Sets.Resource, ShortNames: []string{"sbs"}}
	return platform.Kinds{
		Member:   platform.Kind{GroupKind: schema.GroupKind{Group: Group, Kind: kindSandbox}, Resource: Sandboxes.Resource, ShortNames: []string{"sbx"}},
		Template: set, Pool: set, SharedTemplate: platform.Kind{GroupKind: schema.GroupKind{Group: Group, Kind: kindTemplate}, Resource: Templates.Resource},
		Product: "OpenKruise Agents", Versions: []string{version},
	}
}

// Pool reads a SandboxSet.
func (Objects) Pool(set *unstructured.Unstructured) platform.Pool {
	n, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	pool := platform.Pool{Template: templateOf(set), Replicas: int(n), Withholds: isLeftToItself(set), HiddenFirst: hiddenFirst}
	if templateRef(set) != "" {
		pool.TemplateKind = kindTemplate
	}
	return pool
}

// Render is what the members of a SandboxSet are built from, or what a SandboxTemplate
// has Pods built from. Of that nothing else counts: who refers to it says the rest.
func (Objects) Render(template *unstructured.Unstructured) (revision.Blueprint, error) {
	if template.GetKind() == kindTemplate {
		template = referring(nil, template)
	}
	return contentOf(template)
}

// referring is a template with what a SandboxSet, or a Sandbox, that refers to it says
// besides: from the template comes the Pod alone (buildSandboxTemplateSpec).
func referring(obj, template *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"metadata": template.Object["metadata"]}}
	out.SetGroupVersionKind(template.GroupVersionKind())
	spec := map[string]any{}
	if obj != nil {
		of, _ := obj.Object["spec"].(map[string]any)
		for _, key := range append([]string{"volumeClaimTemplates"}, ownFields...) {
			if v := of[key]; v != nil {
				spec[key] = v
			}
		}
	}
	if pod, _, _ := unstructured.NestedFieldNoCopy(template.Object, "spec", "template"); pod != nil {
		spec["template"] = pod
	}
	out.Object["spec"] = spec
	return out
}

// templateRef is the SandboxTemplate that a SandboxSet or a Sandbox refers to; "" for
// none.
func templateRef(obj *unstructured.Unstructured) string {
	return fields.String(obj.Object, "spec", "templateRef", "name")
}

// leavesPod reports whether a Sandbox has the Pod of the template that it refers to. One that
// says what Pod it has, too, has that (GetTemplateSpec).
func leavesPod(sandbox *unstructured.Unstructured) bool {
	pod, _, err := unstructured.NestedFieldNoCopy(sandbox.Object, "spec", "template", "spec")
	return templateRef(sandbox) != "" && pod == nil && err == nil
}

// templateOf names the template of a SandboxSet, which it is itself unless it refers to
// one.
func templateOf(set *unstructured.Unstructured) string {
	if ref := templateRef(set); ref != "" {
		return ref
	}
	return set.GetName()
}

// poolOf is the SandboxSet that controls a Sandbox; none where it has no UID.
func poolOf(sandbox metav1.Object) freshness.Owner {
	if ref := metav1.GetControllerOfNoCopy(sandbox); ref != nil && isSet(ref) {
		return ownerOf(ref)
	}
	return freshness.Owner{}
}

// besides are the owners that would have a Sandbox beside whoever takes it: SandboxSets
// that stay, and any controller.
func besides(sandbox metav1.Object) []freshness.Owner {
	var out []freshness.Owner
	for _, ref := range sandbox.GetOwnerReferences() {
		if isSet(&ref) || ref.Controller != nil && *ref.Controller {
			out = append(out, ownerOf(&ref))
		}
	}
	return out
}

func ownerOf(ref *metav1.OwnerReference) freshness.Owner {
	kind := freshness.OwnedByAnother
	if isSet(ref) {
		kind = freshness.OwnedByPool
	}
	return freshness.Owner{Kind: kind, Name: ref.Name, UID: string(ref.UID)}
}

func isSet(ref *metav1.OwnerReference) bool {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == schema.GroupKind{Group: Group, Kind: kindSet}
}

// claimOf is who has a Sandbox, by what it says itself; nobody where it has no UID. The
// SandboxSet that is about to delete it is nobody.
func claimOf(sandbox metav1.Object) freshness.Owner {
	id := sandbox.GetAnnotations()[ownerAnnotation]
	if id == "" || id == scaleDown {
		return freshness.Owner{}
	}
	name := sandbox.GetLabels()[claimNameLabel]
	if name == "" {
		name = id
	}
	return freshness.Owner{Kind: freshness.OwnedByClaim, Name: name, UID: id}
}

// isClaimed reports whether a Sandbox says that somebody has it.
func isClaimed(sandbox metav1.Object) bool { return sandbox.GetLabels()[claimedLabel] == yes }

// wasUsed reads the marks of whoever had a member before: who took it, and what that
// leaves on it when it goes back.
func wasUsed(sandbox *unstructured.Unstructured) bool {
	recycled, _, _ := unstructured.NestedInt64(sandbox.Object, "status", "recycledCount")
	return claimOf(sandbox).UID != "" || isClaimed(sandbox) || recycled > 0 ||
		fields.String(sandbox.Object, "spec", "template", "metadata", "labels", ownerLabel) != ""
}

// isReturning: it was let go by one that had it, and its status does not show the end of
// that. Whoever takes it now may lose it to the pool again.
func isReturning(sandbox *unstructured.Unstructured) bool {
	return fields.String(sandbox.Object, "status", "phase") == phaseRecycling
}

// recycles reports whether a pool has its used members come back. What a member says of
// that does not count: its claim may have set it.
func recycles(set, template *unstructured.Unstructured) bool {
	if set.GetAnnotations()[cleanupAnnotation] == yes {
		return true
	}
	for _, obj := range []*unstructured.Unstructured{set, template} {
		if obj != nil && fields.String(obj.Object, "spec", "template", "metadata", "annotations", cleanupAnnotation) == yes {
			return true
		}
	}
	return false
}

// contentOf is what a Sandbox is built from, or what a SandboxSet or a SandboxTemplate
// has Sandboxes built from. The metadata of the Pod is not part of it: every claim writes
// there.
func contentOf(obj *unstructured.Unstructured) (revision.Blueprint, error) {
	spec, _, err := unstructured.NestedMap(obj.Object, "spec")
	if err == nil {
		return blueprintOf(spec)
	}
	return revision.Blueprint{}, fmt.Errorf("reading spec of %s %s: %w", obj.GetKind(), obj.GetName(), err)
}
