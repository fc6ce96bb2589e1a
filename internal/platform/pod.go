package platform

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fields"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
)

// ReadPod reads what a verdict asks of the Pod that a member runs in.
func ReadPod(obj *unstructured.Unstructured) (*freshness.Pod, error) {
	spec, err := fields.Object(obj.Object, "spec")
	if err != nil {
		return nil, fmt.Errorf("reading spec of pod %s: %w", obj.GetName(), err)
	}
	// Others may hold the Pod.
	spec = maps.Clone(spec)
	// Who schedules it takes them off; what a template says of them counts for the
	// member.
	delete(spec, "schedulingGates")
	content, err := revision.FromPodSpec(spec)
	if err != nil {
		return nil, fmt.Errorf("reading blueprint of pod %s: %w", obj.GetName(), err)
	}
	p := &freshness.Pod{
		ControllerUID: ControllerUID(obj),
		Generation:    obj.GetGeneration(),
		Ephemeral:     len(fields.Objects(spec, "ephemeralContainers")) > 0,
		Deleting:      obj.GetDeletionTimestamp() != nil,
		Content:       content,
		Created:       obj.GetCreationTimestamp().Time,
	}
	switch fields.String(obj.Object, "status", "phase") {
	case "Failed", "Succeeded":
		p.Finished = true
	}
	ips, _, _ := unstructured.NestedSlice(obj.Object, "status", "podIPs")
	for _, ip := range ips {
		if m, ok := ip.(map[string]any); ok {
			p.IPs = append(p.IPs, fields.String(m, "ip"))
		}
	}
	return p, nil
}

// ControllerUID is the UID of an object's controller; "" when it has none.
func ControllerUID(obj metav1.Object) string {
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
		return string(owner.UID)
	}
	return ""
}
