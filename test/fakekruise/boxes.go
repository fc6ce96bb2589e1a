package fakekruise

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
)

// builtFrom are the fields of a SandboxSet that its members have as well.
var builtFrom = []string{"template", "templateRef", "volumeClaimTemplates", "persistentContents", "runtimes", "pauseStrategy"}

// newBox is a Sandbox as it is made from a SandboxSet, with the labels of the template.
func newBox(set, template *unstructured.Unstructured) *unstructured.Unstructured {
	spec := map[string]any{}
	for _, field := range builtFrom {
		if value, _, _ := unstructured.NestedFieldCopy(set.Object, "spec", field); value != nil {
			spec[field] = value
		}
	}
	box := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	box.SetGroupVersionKind(set.GroupVersionKind().GroupVersion().WithKind("Sandbox"))
	box.SetNamespace(set.GetNamespace())
	box.SetGenerateName(set.GetName() + "-")
	from := set
	if template != nil {
		from = template
	}
	labels, _, _ := unstructured.NestedStringMap(from.Object, "spec", "template", "metadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(from.Object, "spec", "template", "metadata", "annotations")
	labels, annotations = foreign(labels), foreign(annotations)
	labels[labelPool], labels[labelTemplate], labels[labelClaimed] = set.GetName(), set.GetName(), no
	if ref := text(set, "spec", "templateRef", "name"); ref != "" {
		labels[labelTemplate] = ref
	}
	box.SetLabels(labels)
	box.SetAnnotations(annotations)
	return box
}

// foreign are the keys that are none of the platform's own, but for the one that has a
// used Sandbox come back.
func foreign(m map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if !strings.HasPrefix(k, prefix) || k == keyCleanupEnabled {
			out[k] = v
		}
	}
	return out
}

// revision names what members are built from. Nobody compares it with anything but itself.
func revision(set, template *unstructured.Unstructured) (string, error) {
	spec := map[string]any{}
	for _, field := range builtFrom {
		of := set
		if template != nil && field == "template" {
			of = template
		}
		spec[field], _, _ = unstructured.NestedFieldNoCopy(of.Object, "spec", field)
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encode what %s is built from: %w", set.GetName(), err)
	}
	sum := fnv.New32a()
	_, _ = sum.Write(raw)
	return rand.SafeEncodeString(fmt.Sprint(sum.Sum32())), nil
}

// template is what a SandboxSet refers to; nil where it refers to nothing.
func (v *view) template(of *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ref := text(of, "spec", "templateRef", "name")
	if ref == "" {
		return nil, nil
	}
	template := v.get(Templates, of.GetNamespace()+"/"+ref)
	if template == nil {
		return nil, fmt.Errorf("template %s/%s is not in the cache", of.GetNamespace(), ref)
	}
	return template, nil
}

// state is how a Sandbox counts.
type state string

const (
	available state = "available"
	creating  state = "creating"
	running   state = "running"
	dead      state = "dead"
)

func stateOf(box *unstructured.Unstructured, now time.Time) state {
	switch ends, err := time.Parse(time.RFC3339, text(box, "spec", "shutdownTime")); {
	case box.GetDeletionTimestamp() != nil, err == nil && now.After(ends):
		return dead
	}
	switch text(box, "status", "phase") {
	case phasePending:
		return creating
	case "Succeeded", phaseFailed, "Terminating":
		return dead
	}
	switch ref := metav1.GetControllerOfNoCopy(box); {
	case ref == nil || ref.Kind != "SandboxSet":
		return running
	case isReady(box):
		return available
	}
	return creating
}

func isReady(box *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(box.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if c["type"] == "Ready" {
			return c["status"] == "True"
		}
	}
	return false
}

// lock marks a Sandbox for whoever takes or deletes it.
func lock(box *unstructured.Unstructured, key, owner string) {
	annotate(box, keyLock, key)
	annotate(box, keyOwner, owner)
}

func annotate(obj *unstructured.Unstructured, key, value string) {
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

func label(obj *unstructured.Unstructured, key, value string) {
	labels := maps.Clone(obj.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	obj.SetLabels(labels)
}

func controlledBy(owner *unstructured.Unstructured) []metav1.OwnerReference {
	gvk := owner.GroupVersionKind()
	return []metav1.OwnerReference{{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
}

func text(obj *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(obj.Object, path...)
	return s
}

func number(obj *unstructured.Unstructured, path ...string) int {
	n, _, _ := unstructured.NestedInt64(obj.Object, path...)
	return int(n)
}
