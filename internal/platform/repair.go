package platform

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// Repair is what a cold start, or a member, has to be rewritten to.
type Repair struct {
	// From is the revision that it was rendered from, To the one in force.
	From, To string
	Fields   []Field
}

// Field is one field of an object.
type Field struct {
	Path []string
	// Value is nil where there is to be none.
	Value any
}

// repairArrow stands between the two revisions.
const repairArrow = " -> "

// Note is the value of RepairedKey.
func (r Repair) Note() string { return r.From + repairArrow + r.To }

// IsRepaired reports whether that is a value of RepairedKey.
func IsRepaired(note string) bool {
	_, _, ok := ParseRepaired(note)
	return ok
}

// ParseRepaired reads the value of RepairedKey; false when it is none.
func ParseRepaired(note string) (from, to string, ok bool) {
	from, to, _ = strings.Cut(note, repairArrow)
	return from, to, from != "" && to != "" && from != to
}

// Rewritten are the fields of a sandbox's spec, of those at these paths, that a spec has
// otherwise.
func Rewritten(sandbox *unstructured.Unstructured, spec map[string]any, paths ...[]string) []Field {
	var out []Field
	for _, path := range paths {
		value, _, _ := unstructured.NestedFieldNoCopy(spec, path...)
		at := append([]string{"spec"}, path...)
		if has, _, _ := unstructured.NestedFieldNoCopy(sandbox.Object, at...); !reflect.DeepEqual(has, value) {
			out = append(out, Field{Path: at, Value: value})
		}
	}
	return out
}

// RepairNote is the note that a new sandbox, which is of this revision, has to carry,
// rewritten or not: the API server may ask once more for what was rewritten already. Like
// a stamp, a note that somebody else wrote misleads nobody but its reader.
func RepairNote(sandbox *unstructured.Unstructured, f Facts, hash string) string {
	note := sandbox.GetAnnotations()[settings.RepairedKey]
	from, to, ok := ParseRepaired(note)
	older := slices.ContainsFunc(f.Known, func(k freshness.Known) bool { return k.Hash == from })
	mayBe := f.Operation == freshness.ColdStart || f.Pool != nil && f.Pool.Replenishes
	if !mayBe || !ok || to != hash || !older {
		return ""
	}
	return note
}
