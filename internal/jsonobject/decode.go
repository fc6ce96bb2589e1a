// Package jsonobject decodes objects of the API server into maps, in one pass.
//
// What the API machinery has for it goes over the text four times, and took most of the CPU
// of a bind. Package jsontext goes over it once. What it does not take, such as what is no
// JSON, is left to the API machinery: both say the same of each text.
package jsonobject

import (
	"k8s.io/apimachinery/pkg/util/json"
)

// Decode decodes an object as the API machinery does (apimachinery, pkg/util/json): numbers
// are int64 where they can be, else float64, and the last of several equal keys counts. null
// is a nil map.
func Decode(text []byte) (map[string]any, error) {
	if object, ok := parse(text, elsewhere); ok {
		return object, nil
	}
	var object map[string]any
	err := json.Unmarshal(text, &object)
	return object, err
}

// Read decodes an object of the API server without its metadata.managedFields, which are
// a good part of it. false leaves everything open.
func Read(text []byte) (map[string]any, bool) { return parse(text, whole) }
