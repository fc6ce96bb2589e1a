package fields

import (
	"maps"
	"reflect"
	"slices"
)

// overhead is about what a decoded value needs beside its text.
const overhead = 32

// Bytes is about what a decoded value needs in memory.
func Bytes(v any) int {
	n := overhead
	switch v := v.(type) {
	case string:
		n += len(v)
	case []any:
		for _, item := range v {
			n += Bytes(item)
		}
	case map[string]any:
		for key, item := range v {
			n += overhead + len(key) + Bytes(item)
		}
	}
	return n
}

// Equal reports whether two decoded values are the same, down to their types, as
// reflect.DeepEqual does, which takes some times longer.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && (a == nil) == (b == nil) && maps.EqualFunc(a, b, Equal)
	case []any:
		b, ok := b.([]any)
		return ok && (a == nil) == (b == nil) && slices.EqualFunc(a, b, Equal)
	case string, bool, int64, float64, nil:
		return a == b
	}
	return reflect.DeepEqual(a, b)
}
