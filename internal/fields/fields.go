// Package fields reads objects that are known as JSON only.
package fields

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// String returns a text in an object; "" when there is none.
func String(object map[string]any, path ...string) string {
	s, _, _ := unstructured.NestedString(object, path...)
	return s
}

// Object returns an object in an object, not a copy; nil when there is none. The error says
// that it is something else.
func Object(object map[string]any, key string) (map[string]any, error) {
	v, found := object[key]
	if !found {
		return nil, nil
	}
	inner, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: must be an object, is %T", key, v)
	}
	return inner, nil
}

// Objects returns the objects of a list, without what is none.
func Objects(object map[string]any, list string) []map[string]any {
	items, _ := object[list].([]any)
	var out []map[string]any
	for _, item := range items {
		if o, ok := item.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}
