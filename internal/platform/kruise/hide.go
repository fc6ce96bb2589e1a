package kruise

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// hiddenFirst is longer than the caches of the E2B server are late unless something is
// wrong. It gives up at a member that is gone when it has locked it, and tries another
// one after a Conflict.
const hiddenFirst = 2 * time.Second

// IsShown reports whether whoever looks for a member finds it: who picks one lists those
// whose label names what is asked for (pickAnAvailableSandbox). The SandboxSet goes by who
// owns it, and so counts a hidden one and makes no other in its place.
func (Objects) IsShown(sandbox metav1.Object) bool {
	return sandbox.GetLabels()[templateLabel] != hiddenTemplate
}

// Hide has the label name what nobody asks for, and notes what it said.
func (o Objects) Hide(sandbox platform.Version) []byte {
	labels := sandbox.GetLabels()
	if labels[templateLabel] == hiddenTemplate {
		return patchOf(sandbox, nil, nil)
	}
	return patchOf(sandbox, map[string]any{templateLabel: hiddenTemplate}, map[string]any{settings.ShownAsKey: orNone(labels[templateLabel])})
}

// Show gives a hidden member the label back that it had. Where nobody can tell that any more,
// it is found by its SandboxSet, as most are and as one without the label is.
func (o Objects) Show(sandbox platform.Version) []byte {
	labels := sandbox.GetLabels()
	if labels[templateLabel] != hiddenTemplate {
		return patchOf(sandbox, nil, nil)
	}
	was := sandbox.GetAnnotations()[settings.ShownAsKey]
	if was == "" || was == hiddenTemplate || len(validation.IsValidLabelValue(was)) > 0 {
		was = labels[poolLabel]
	}
	return patchOf(sandbox, map[string]any{templateLabel: orNone(was)}, map[string]any{settings.ShownAsKey: nil})
}

// Offer has no patch: who was refused a member looks at it again once it has another
// version, so that hiding and showing it offers it.
func (Objects) Offer(*unstructured.Unstructured) (patch []byte, ok bool) { return nil, false }

// orNone is nil, which a merge patch takes away, for "".
func orNone(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// patchOf is a merge patch of exactly this version.
func patchOf(sandbox platform.Version, labels, annotations map[string]any) []byte {
	metadata := map[string]any{"uid": sandbox.GetUID(), "resourceVersion": sandbox.GetResourceVersion()}
	// An empty map patches nothing, and null would take all away.
	if labels != nil {
		metadata["labels"] = labels
	}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		panic("marshalling strings: " + err.Error())
	}
	return patch
}
