package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	strictjson "sigs.k8s.io/json"
)

// unknownFields are the fields of an object that its kind does not have: kubectl
// apply refuses them, and a server that prunes them makes members of something
// else than the file says.
func (d *crdDefaults) unknownFields(obj *unstructured.Unstructured) ([]string, error) {
	s, err := d.schemaOf(obj.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	out, err := unknownMetadata(obj)
	if err != nil {
		return nil, err
	}
	// Of metadata the API server publishes no more than a reference.
	content := maps.Clone(obj.Object)
	delete(content, "metadata")
	return append(out, s.unknown(nil, content)...), nil
}

func unknownMetadata(obj *unstructured.Unstructured) ([]string, error) {
	raw, err := json.Marshal(map[string]any{"metadata": obj.Object["metadata"]})
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	var typed struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	strict, err := strictjson.UnmarshalStrict(raw, &typed)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	var out []string
	for _, err := range strict {
		path := err.Error()
		if at := strictjson.FieldError(nil); errors.As(err, &at) {
			path = at.FieldPath()
		}
		out = append(out, path+": unknown field")
	}
	return out, nil
}

// unknown walks a value beside its schema. Where that names no fields, or allows
// others, any are known.
func (s *openAPISchema) unknown(at *field.Path, value any) []string {
	if s == nil || s.PreserveUnknown {
		return nil
	}
	var out []string
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			property, declared := s.Properties[key]
			path := child(at, key)
			switch {
			case declared:
				out = append(out, property.unknown(path, v[key])...)
			case s.AdditionalProperties.openAPISchema != nil:
				out = append(out, s.AdditionalProperties.unknown(at.Key(key), v[key])...)
			case len(s.Properties) > 0 && !s.AdditionalProperties.Any:
				out = append(out, path.String()+": unknown field")
			}
		}
	case []any:
		for i, item := range v {
			out = append(out, s.Items.unknown(at.Index(i), item)...)
		}
	}
	return out
}

func child(at *field.Path, key string) *field.Path {
	if at == nil {
		return field.NewPath(key)
	}
	return at.Child(key)
}
