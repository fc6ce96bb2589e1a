// Package fields reads objects that are known as JSON only.
package fields

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// String returns a text in an object; "" when there is none.
func String(object map[string]any, path ...string) string {
	s, _, _ := unstructured.NestedString(object, path...)
	return s
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
