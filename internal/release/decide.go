package release

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// marks are the keys of Freshbind that an object carries. On Sandboxes, Pods and
// claims nobody else writes any; on pools those that are inputs are the user's.
type marks struct{ labels, annotations []string }

func marksOf(obj metav1.Object) marks {
	return marks{keysOf(obj.GetLabels(), nil), keysOf(obj.GetAnnotations(), nil)}
}

// outcomesOf are the marks of a pool.
func outcomesOf(pool metav1.Object) marks {
	return marks{annotations: keysOf(pool.GetAnnotations(), settings.IsOutput)}
}

// inputsOf are what the user of a pool says to Freshbind.
func inputsOf(pool metav1.Object) []string {
	return keysOf(pool.GetAnnotations(), func(key string) bool { return !settings.IsOutput(key) })
}

func keysOf(all map[string]string, which func(key string) bool) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(key, settings.Prefix) && (which == nil || which(key)) {
			out = append(out, key)
		}
	}
	return out
}

func (m marks) none() bool { return len(m.labels)+len(m.annotations) == 0 }

// unmark returns a merge patch that removes marks from the object, and from no
// other one of its name.
func (m marks) unmark(obj metav1.Object) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "labels": nulls(m.labels), "annotations": nulls(m.annotations),
	}})
}

// nulls never is nil: that would remove everybody's keys.
func nulls(keys []string) map[string]any {
	out := make(map[string]any, len(keys))
	for _, key := range keys {
		out[key] = nil
	}
	return out
}

// state is what a member is to whoever leaves.
type state int

const (
	// foreign: no pool has it, or a claim has it already.
	foreign state = iota
	// hidden from claims.
	hidden
	// starting is shown to claims, and not ready.
	starting
	// shownReady is shown and ready. One that was refused to a claim may have been
	// forgotten by the claim controller all the same.
	shownReady
)

func (r platformRelease) stateOf(member *unstructured.Unstructured) (s state, pool types.UID) {
	d := r.Objects.DescribeMember(member)
	uid := types.UID(d.Controller.UID)
	switch {
	case d.Controller.Kind != freshness.OwnedByPool || member.GetDeletionTimestamp() != nil:
		return foreign, ""
	case d.Shown && d.ReadySince.IsZero():
		return starting, uid
	case d.Shown:
		return shownReady, uid
	case d.Hideable:
		return hidden, uid
	}
	return foreign, ""
}
