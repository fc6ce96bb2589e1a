package kruise

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fields"
	"github.com/freshbind/freshbind/internal/revision"
)

// ownFields are what a Sandbox is built from beside Pod and volumes.
var ownFields = []string{"persistentContents", "runtimes", "pauseStrategy"}

// ownElement is the name of an element that holds ownFields. No volume can have it.
const ownElement = Group + "/sandbox"

// blueprintOf brings a spec into the form that revisions are compared in. That form
// knows a Pod and volumes; what else there is stands after the volumes. The schemas keep
// whatever a template says, and the platform's controllers decode it.
func blueprintOf(spec map[string]any) (revision.Blueprint, error) {
	out := map[string]any{}
	switch template := spec["template"].(type) {
	case nil:
	case map[string]any:
		out["podTemplate"] = map[string]any{"spec": revision.Prune(template["spec"])}
	default:
		return revision.Blueprint{}, fmt.Errorf("spec.template: must be an object, is %T", template)
	}
	volumes, isList := spec["volumeClaimTemplates"].([]any)
	if v := spec["volumeClaimTemplates"]; v != nil && !isList {
		return revision.Blueprint{}, fmt.Errorf("spec.volumeClaimTemplates: must be a list, is %T", v)
	}
	if own := ownOf(spec); len(own) > 0 {
		own["metadata"] = map[string]any{"name": ownElement}
		volumes = append(volumes[:len(volumes):len(volumes)], own)
	}
	if len(volumes) > 0 {
		out["volumeClaimTemplates"] = volumes
	}
	return revision.FromSpec(out)
}

// ownOf leaves out what is empty, as the platform's own encoder does.
func ownOf(spec map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range ownFields {
		v := spec[key]
		if v == nil || (reflect.ValueOf(v).Kind() == reflect.Map || reflect.ValueOf(v).Kind() == reflect.Slice) && reflect.ValueOf(v).Len() == 0 {
			continue
		}
		out[key] = v
	}
	if ref := fields.String(spec, "templateRef", "name"); ref != "" {
		out["templateRef"] = ref
	}
	return out
}

// ask is what a claim may change of a Sandbox in place: image and resources of its first
// container.
type ask struct {
	// unspecified: the claim has no object that says so. Then the image may be any, and the
	// amount of CPU.
	unspecified bool
	// image is the one that the claim names; "" for none.
	image string
	// resources are those that it names, under requests and limits.
	resources map[string]any
}

// asked reads what a SandboxClaim asks for.
func asked(claim *unstructured.Unstructured) ask {
	resources, _, _ := unstructured.NestedMap(claim.Object, "spec", "inplaceUpdate", "resources")
	return ask{image: fields.String(claim.Object, "spec", "inplaceUpdate", "image"), resources: resources}
}

func (a ask) allowsImage(image any) bool {
	return a.unspecified || a.image != "" && image == a.image
}

func (a ask) allowsAmount(list, name string, amount any) bool {
	if a.unspecified {
		return name == "cpu"
	}
	named, _ := a.resources[list].(map[string]any)
	want, is := named[name]
	return is && sameAmount(want, amount)
}

func sameAmount(a, b any) bool {
	x, errX := resource.ParseQuantity(fmt.Sprint(a))
	y, errY := resource.ParseQuantity(fmt.Sprint(b))
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// undone returns the content of a Sandbox's spec with what its claim asked for put back
// to what it was, or would have been, before.
func undone(sandbox, before *unstructured.Unstructured, by ask) (revision.Blueprint, error) {
	now := sandbox.DeepCopy()
	if c, was := firstContainer(now), firstContainer(before); c != nil && was != nil && c["name"] == was["name"] {
		by.undo(c, was)
	}
	return contentOf(now)
}

func (a ask) undo(c, was map[string]any) {
	if image, is := was["image"]; is && a.allowsImage(c["image"]) {
		c["image"] = image
	}
	resources, _ := c["resources"].(map[string]any)
	for _, list := range []string{"requests", "limits"} {
		amounts, _ := resources[list].(map[string]any)
		wasAmounts, _, _ := unstructured.NestedMap(was, "resources", list)
		for name, amount := range amounts {
			if !a.allowsAmount(list, name, amount) {
				continue
			}
			if amounts[name] = wasAmounts[name]; amounts[name] == nil {
				delete(amounts, name)
			}
		}
		if len(amounts) == 0 && wasAmounts == nil {
			delete(resources, list)
		}
	}
}

// firstContainer of spec.template; nil for none.
func firstContainer(obj *unstructured.Unstructured) map[string]any {
	spec, _ := obj.Object["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	podSpec, _ := template["spec"].(map[string]any)
	containers, _ := podSpec["containers"].([]any)
	if len(containers) == 0 {
		return nil
	}
	first, _ := containers[0].(map[string]any)
	return first
}
