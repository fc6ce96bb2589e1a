package app

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// What the API server would refuse, or silently drop, is named with its path.
func TestSimulateUnknownFields(t *testing.T) {
	const published = `{"properties": {
		"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"allOf": [{"$ref": "x"}]},
		"spec": {"properties": {
			"podTemplate": {"properties": {"spec": {"properties": {
				"containers": {"items": {"properties": {"name": {}, "image": {}}}},
				"nodeSelector": {"additionalProperties": {"type": "string"}}
			}}}},
			"free": {"x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {}}},
			"any": {"properties": {"a": {}}, "additionalProperties": true},
			"none": {"properties": {"a": {}}, "additionalProperties": false}
		}}
	}}`
	kind := schema.GroupVersionKind{Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Kind: "SandboxTemplate"}
	var s openAPISchema
	if err := json.Unmarshal([]byte(published), &s); err != nil {
		t.Fatal(err)
	}
	d := &crdDefaults{known: map[schema.GroupVersionKind]*openAPISchema{kind: &s}}
	for name, tc := range map[string]struct {
		in   string
		want []string
	}{
		"all are known": {"metadata: {name: a, labels: {b: c}}\nspec: {podTemplate: {spec: {containers: [{name: c}], nodeSelector: {x: y}}}}", nil},
		"a misspelt list": {
			"spec: {podTemplate: {spec: {containerz: [{name: c}]}}}", []string{"spec.podTemplate.spec.containerz: unknown field"},
		},
		"in an item": {
			"spec: {podTemplate: {spec: {containers: [{name: c}, {imagee: c}]}}}", []string{"spec.podTemplate.spec.containers[1].imagee: unknown field"},
		},
		"at the top":           {"specc: {}", []string{"specc: unknown field"}},
		"in metadata":          {"metadata: {anotations: {a: b}}", []string{"metadata.anotations: unknown field"}},
		"where any are kept":   {"spec: {free: {b: c}, any: {b: c}}", nil},
		"where others are not": {"spec: {none: {b: c}}", []string{"spec.none.b: unknown field"}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.in), &obj.Object); err != nil {
				t.Fatal(err)
			}
			obj.SetGroupVersionKind(kind)
			got, err := d.unknownFields(obj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unknown fields (-want,+got):\n%s", diff)
			}
		})
	}
}
