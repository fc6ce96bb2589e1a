// Package exampleplatform is a warm-pool system as small as one can be, to show that
// adding one touches nothing but its own folder. docs/platforms.md walks through it.
//
// A Fleet is pool and template at once. Its members are Boxes, each of which runs in the
// Pod of its name. A claim has no object: whoever takes a Box updates it, writes their
// name onto it, and drops the Fleet that owned it.
package exampleplatform

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

const (
	// Group is that of both kinds.
	Group = "fleets.example.com"
	// Version is the only one that is served.
	Version = "v1"

	// ClaimKey is the annotation with the name of whoever has a Box.
	ClaimKey = Group + "/claim"
	// AskKey is the annotation with the Fleet that they want a Box of; without it any
	// will do.
	AskKey = Group + "/ask"

	// ControllerUser makes the Boxes of Fleets.
	ControllerUser = "system:serviceaccount:fleets:controller"

	fleetKind = "Fleet"
	boxKind   = "Box"
)

// Fleets and Boxes are the resources; Pods are the API server's own.
var (
	Fleets = schema.GroupResource{Group: Group, Resource: "fleets"}
	Boxes  = schema.GroupResource{Group: Group, Resource: "boxes"}
	pods   = schema.GroupResource{Resource: "pods"}
)

// Objects reads Fleets and Boxes, and needs no cluster for it.
type Objects struct{}

// Kinds has no kind of claims, and one kind for pools and templates.
func (Objects) Kinds() platform.Kinds {
	kind := func(kind string, gr schema.GroupResource) platform.Kind {
		return platform.Kind{GroupKind: schema.GroupKind{Group: gr.Group, Kind: kind}, Resource: gr.Resource}
	}
	fleet := kind(fleetKind, Fleets)
	return platform.Kinds{Member: kind(boxKind, Boxes), Template: fleet, Pool: fleet, Product: "Fleets", Versions: []string{Version}}
}

// Pool reads a Fleet, which refers to itself.
func (Objects) Pool(fleet *unstructured.Unstructured) platform.Pool {
	n, _, _ := unstructured.NestedInt64(fleet.Object, "spec", "replicas")
	return platform.Pool{Template: fleet.GetName(), Replicas: int(n)}
}

// Render returns what the Boxes of a Fleet are built from: spec.box is the spec of a Box.
func (Objects) Render(fleet *unstructured.Unstructured) (revision.Blueprint, error) {
	return specAt(fleet, "spec", "box")
}

// contentOf returns what a Box is built from.
func contentOf(box *unstructured.Unstructured) (revision.Blueprint, error) {
	return specAt(box, "spec")
}

// specAt reads the spec of a Box. What cannot be read is an error, and no verdict.
func specAt(obj *unstructured.Unstructured, path ...string) (revision.Blueprint, error) {
	spec, _, err := unstructured.NestedMap(obj.Object, path...)
	if err != nil {
		return revision.Blueprint{}, fmt.Errorf("reading %s of %s %s: %w", strings.Join(path, "."), obj.GetKind(), obj.GetName(), err)
	}
	return revision.FromSpec(spec)
}

// claimOf is who has a Box; nobody where it has no name.
func claimOf(box metav1.Object) freshness.Owner {
	name := box.GetAnnotations()[ClaimKey]
	if name == "" {
		return freshness.Owner{}
	}
	// There is no object that could have a UID: the name is all there is.
	return freshness.Owner{Kind: freshness.OwnedByClaim, Name: name, UID: name}
}

// fleetOf is the Fleet that a Box is a member of; none where it has no name.
func fleetOf(box metav1.Object) freshness.Owner {
	for _, ref := range box.GetOwnerReferences() {
		if isFleet(ref) {
			return freshness.Owner{Kind: freshness.OwnedByPool, Name: ref.Name, UID: string(ref.UID)}
		}
	}
	return freshness.Owner{}
}

func isFleet(ref metav1.OwnerReference) bool {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == schema.GroupKind{Group: Group, Kind: fleetKind}
}

// boxOf is the name of the Box that a Pod belongs to; "" for none.
func boxOf(pod metav1.Object) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || !isBox(*owner) {
		return ""
	}
	return owner.Name
}

func isBox(ref metav1.OwnerReference) bool {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == schema.GroupKind{Group: Group, Kind: boxKind}
}
