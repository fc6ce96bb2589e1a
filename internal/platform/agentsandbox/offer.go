package agentsandbox

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NameHash is upstream's hash of a name: FNV-1a, 32 bits, eight hex digits
// (controllers/sandbox_controller.go, NameHash).
func NameHash(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return fmt.Sprintf("%08x", h.Sum32())
}

// HidePatch returns a JSON merge patch after which the claim controller passes
// the member over. It applies to exactly this version of it.
func HidePatch(sandbox *unstructured.Unstructured) []byte { return labelPatch(sandbox, nil) }

// ShowPatch returns a JSON merge patch that offers the member (again): the
// claim controller queues a member when it becomes adoptable, never before.
func ShowPatch(sandbox *unstructured.Unstructured) []byte {
	return labelPatch(sandbox, NameHash(sandbox.GetAnnotations()[templateRefAnnotation]))
}

func labelPatch(sandbox *unstructured.Unstructured, value any) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             sandbox.GetUID(),
		"resourceVersion": sandbox.GetResourceVersion(),
		"labels":          map[string]any{TemplateRefHashLabel: value},
	}})
	if err != nil {
		panic("marshalling strings: " + err.Error())
	}
	return patch
}
