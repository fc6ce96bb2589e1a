package warmpool

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/test/scenario"
)

// NewObject is one of a kind of OpenKruise Agents.
func NewObject(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": fakekruise.Sets.GroupVersion().String(), "kind": kind, "spec": spec}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// newSet says itself what members are built from, unless that is by reference.
func newSet(o PoolOptions) *unstructured.Unstructured {
	annotations := map[string]string{}
	maps.Copy(annotations, o.Annotations)
	if o.Strategy != OwnRolling {
		annotations[settings.StrategyKey] = o.Strategy
	}
	set := NewObject("SandboxSet", o.Namespace, PoolName, map[string]any{"replicas": int64(o.Size)})
	set.SetAnnotations(annotations)
	if o.ByReference {
		set.Object["spec"].(map[string]any)["templateRef"] = map[string]any{"name": PoolName}
		return set
	}
	return filled(set, o)
}

// newTemplate has the SandboxSet's own name: whoever takes members finds none by another.
func newTemplate(o PoolOptions) *unstructured.Unstructured {
	return filled(NewObject("SandboxTemplate", o.Namespace, PoolName, map[string]any{}), o)
}

// filled is one of both with what members are built from. What was used comes back, unless
// the pool is left to its own controller.
func filled(template *unstructured.Unstructured, o PoolOptions) *unstructured.Unstructured {
	if o.Strategy != OwnRolling {
		_ = unstructured.SetNestedField(template.Object, "true", "spec", "template", "metadata", "annotations", keyRecycles)
	}
	return (*SetPool)(nil).Asking(template, o.Spec)
}

// Asking changes it.
func (*SetPool) Asking(set *unstructured.Unstructured, spec corev1.PodSpec) *unstructured.Unstructured {
	out := set.DeepCopy()
	plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err == nil {
		err = unstructured.SetNestedMap(out.Object, plain, "spec", "template", "spec")
	}
	if err != nil {
		panic(fmt.Sprintf("write the content of a SandboxSet: %v", err))
	}
	return out
}

// memberOf is ready as soon as somebody could be given it.
func memberOf(box *unstructured.Unstructured) scenario.Member {
	m := scenario.Member{
		Name: box.GetName(), UID: box.GetUID(), Shown: box.GetLabels()[labelTemplate] == PoolName,
		Deleting: box.GetDeletionTimestamp() != nil || box.GetAnnotations()[KeyLock] != "",
		Image:    firstImage(box, "spec", "template", "spec"),
	}
	phase, _, _ := unstructured.NestedString(box.Object, "status", "phase")
	ip, _, _ := unstructured.NestedString(box.Object, "status", "podInfo", "podIP")
	conditions, _, _ := unstructured.NestedSlice(box.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		m.Ready = m.Ready || c["type"] == "Ready" && c["status"] == "True" && ip != "" && phase == "Running"
	}
	return m
}

// firstImage is that of the first container of a Pod's spec at this path.
func firstImage(of *unstructured.Unstructured, path ...string) string {
	containers, _, _ := unstructured.NestedSlice(of.Object, append(path, "containers")...)
	if len(containers) == 0 {
		return ""
	}
	first, _ := containers[0].(map[string]any)
	image, _ := first["image"].(string)
	return image
}
