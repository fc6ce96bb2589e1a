package app

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fileDefaults reads the defaults from files with CustomResourceDefinitions, as
// releases of a platform have them, for where there is no cluster. Documents of
// other kinds do not count, so a manifest of everything will do.
func fileDefaults(files []string) (*crdDefaults, error) {
	d := &crdDefaults{known: map[schema.GroupVersionKind]*openAPISchema{}}
	for _, file := range files {
		// It is no "-".
		_, documents, err := readDocuments(nil, file)
		if err != nil {
			return nil, fmt.Errorf("--crds: %w", err)
		}
		before := len(d.known)
		for _, document := range documents {
			if document.object.GroupVersionKind().GroupKind() != crdKind {
				continue
			}
			if err := d.add(document.object.Object); err != nil {
				return nil, fmt.Errorf("--crds: %s: %w", document.position, err)
			}
		}
		if len(d.known) == before {
			return nil, fmt.Errorf("--crds: %s: no %s with a schema: name a manifest of the platform's release", file, crdKind.Kind)
		}
	}
	return d, nil
}

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// add learns the versions of a CRD that are served.
func (d *crdDefaults) add(content map[string]any) error {
	raw, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	var crd struct {
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
			Versions []struct {
				Name   string `json:"name"`
				Served bool   `json:"served"`
				Schema struct {
					OpenAPIV3Schema *openAPISchema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &crd); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	for _, v := range crd.Spec.Versions {
		s := v.Schema.OpenAPIV3Schema
		if !v.Served || s == nil {
			continue
		}
		if s.Properties == nil {
			s.Properties = map[string]*openAPISchema{}
		}
		// Every object has these, whether its CRD names them or not.
		for _, key := range []string{"apiVersion", "kind"} {
			if s.Properties[key] == nil {
				s.Properties[key] = &openAPISchema{}
			}
		}
		d.known[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = s
	}
	return nil
}
