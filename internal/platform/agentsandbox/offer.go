package agentsandbox

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/platform"
)

// NameHash is upstream's hash of a name: FNV-1a, 32 bits, eight hex digits
// (controllers/sandbox_controller.go, NameHash).
func NameHash(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return fmt.Sprintf("%08x", h.Sum32())
}

// HidePatch returns a JSON merge patch after which the claim controller passes
// the member over. It applies to exactly this version of it. A member that does
// not say which template it is of could not be shown again, and the patch leaves
// it as it is: those are of v0.3.10, which keeps no queue to be offered for.
func HidePatch(sandbox platform.Version) []byte {
	if !Hideable(sandbox) {
		return untouched(sandbox)
	}
	return labelPatch(sandbox, nil)
}

// Hideable reports whether a member that is hidden could be shown again.
func Hideable(sandbox platform.Version) bool {
	return sandbox.GetAnnotations()[templateRefAnnotation] != ""
}

// ShowPatch returns a JSON merge patch that offers the member (again): the
// claim controller queues a member when it becomes adoptable, never before.
// What HidePatch leaves alone, it does too.
func ShowPatch(sandbox platform.Version) []byte {
	template := sandbox.GetAnnotations()[templateRefAnnotation]
	if template == "" {
		return untouched(sandbox)
	}
	return labelPatch(sandbox, NameHash(template))
}

func untouched(sandbox platform.Version) []byte {
	return marshal(map[string]any{"metadata": exactly(sandbox)})
}

// OfferPatch returns a JSON merge patch of the status, after which the claim
// controller queues a member that is shown (again): it does so when it sees the
// node of an adoptable member change, and the Sandbox controller writes the node
// back at once (from v0.5.3 on; sandboxclaim_controller.go, sandboxEventHandler).
// Other than hiding and showing it leaves no moment in which the member is out
// of sight, which a pool that recreates would use to delete it. ok is false when
// the Sandbox shows no node.
func OfferPatch(sandbox *unstructured.Unstructured) (patch []byte, ok bool) {
	if str(sandbox.Object, "status", "nodeName") == "" {
		return nil, false
	}
	return marshal(map[string]any{
		"metadata": exactly(sandbox),
		"status":   map[string]any{"nodeName": nil},
	}), true
}

// exactly makes a patch apply to this version of the object only.
func exactly(obj platform.Version) map[string]any {
	return map[string]any{"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion()}
}

func labelPatch(sandbox platform.Version, value any) []byte {
	metadata := exactly(sandbox)
	metadata["labels"] = map[string]any{TemplateRefHashLabel: value}
	return marshal(map[string]any{"metadata": metadata})
}

func marshal(patch map[string]any) []byte {
	raw, err := json.Marshal(patch)
	if err != nil {
		panic("marshalling strings: " + err.Error())
	}
	return raw
}
