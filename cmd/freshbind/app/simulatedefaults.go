package app

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
)

// crdDefaults sets the defaults that the API server sets before it stores an
// object: a file that was applied must equal what is stored. They are read from
// the cluster's OpenAPI documents, which everybody may read, unlike the CRDs.
type crdDefaults struct {
	// client is nil where all that can be known is known.
	client openapi.Client
	known  map[schema.GroupVersionKind]*openAPISchema
}

func newCRDDefaults(cfg *rest.Config) (*crdDefaults, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create discovery client: %w", err)
	}
	return &crdDefaults{client: client.OpenAPIV3(), known: map[schema.GroupVersionKind]*openAPISchema{}}, nil
}

// openAPISchema is the part of a schema that says defaults. CRDs are published
// without references.
type openAPISchema struct {
	Kinds                []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
	Default              json.RawMessage           `json:"default"`
	Properties           map[string]*openAPISchema `json:"properties"`
	Items                *openAPISchema            `json:"items"`
	AdditionalProperties schemaOrBool              `json:"additionalProperties"`
	PreserveUnknown      bool                      `json:"x-kubernetes-preserve-unknown-fields"`
}

// schemaOrBool has no schema for a boolean; Any is true for true.
type schemaOrBool struct {
	*openAPISchema
	Any bool
}

// UnmarshalJSON reads either form.
func (s *schemaOrBool) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return json.Unmarshal(data, &s.Any)
	}
	s.openAPISchema = &openAPISchema{}
	return json.Unmarshal(data, s.openAPISchema)
}

func (d *crdDefaults) apply(obj *unstructured.Unstructured) error {
	s, err := d.schemaOf(obj.GroupVersionKind())
	if err != nil {
		return err
	}
	// metadata belongs to the API machinery, and status to the controllers.
	spec, ok := s.Properties["spec"]
	value, isObject := obj.Object["spec"].(map[string]any)
	if !ok || !isObject {
		return errors.New("spec: required, and must be an object")
	}
	return spec.fill(value)
}

func (d *crdDefaults) schemaOf(gvk schema.GroupVersionKind) (*openAPISchema, error) {
	if s, ok := d.known[gvk]; ok {
		return s, nil
	}
	if d.client == nil {
		return nil, fmt.Errorf("kind: no CRD that was given serves %s of %s", gvk.Kind, gvk.GroupVersion())
	}
	paths, err := d.client.Paths()
	if err != nil {
		return nil, fmt.Errorf("list the cluster's OpenAPI documents: %w", err)
	}
	document, ok := paths["apis/"+gvk.GroupVersion().String()]
	if !ok {
		return nil, fmt.Errorf("apiVersion: this cluster does not serve %s", gvk.GroupVersion())
	}
	raw, err := document.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document of %s: %w", gvk.GroupVersion(), err)
	}
	var content struct {
		Components struct {
			Schemas map[string]*openAPISchema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("decode the OpenAPI document of %s: %w", gvk.GroupVersion(), err)
	}
	for _, s := range content.Components.Schemas {
		for _, kind := range s.Kinds {
			d.known[kind] = s
		}
	}
	if s, ok := d.known[gvk]; ok {
		return s, nil
	}
	return nil, fmt.Errorf("kind: this cluster does not serve %s of %s", gvk.Kind, gvk.GroupVersion())
}

// fill sets what is missing below a value that is there.
func (s *openAPISchema) fill(value any) error {
	if s == nil {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		for key, property := range s.Properties {
			if v[key] == nil && property.Default != nil {
				var byDefault any
				if err := utiljson.Unmarshal(property.Default, &byDefault); err != nil {
					return fmt.Errorf("decode the default of %s: %w", key, err)
				}
				v[key] = byDefault
			}
			if err := property.fill(v[key]); err != nil {
				return err
			}
		}
		for key, element := range v {
			if _, declared := s.Properties[key]; !declared {
				if err := s.AdditionalProperties.fill(element); err != nil {
					return err
				}
			}
		}
	case []any:
		for _, item := range v {
			if err := s.Items.fill(item); err != nil {
				return err
			}
		}
	}
	return nil
}
