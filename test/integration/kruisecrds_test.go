package integration

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/platform/kruise"
)

// What the schemas of OpenKruise Agents are made of. Templates of Pods and volumes are
// whatever somebody writes, as there.
var (
	crdString  = apiextensionsv1.JSONSchemaProps{Type: "string"}
	crdInteger = apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32"}
	crdAny     = apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: ptr.To(true)}
	crdStrings = apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &crdString}}
)

func crdObject(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
}

// kruiseCRDs define the kinds of OpenKruise Agents, as far as a guard reads them.
func kruiseCRDs() []*apiextensionsv1.CustomResourceDefinition {
	type fields = map[string]apiextensionsv1.JSONSchemaProps
	built := func(more fields) apiextensionsv1.JSONSchemaProps {
		runtimes := crdObject(fields{"name": crdString})
		all := fields{
			"template": crdAny, "volumeClaimTemplates": crdAny, "persistentContents": crdStrings,
			"runtimes":      {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &runtimes}},
			"pauseStrategy": crdObject(fields{"type": crdString}),
			"templateRef":   crdObject(fields{"apiVersion": crdString, "kind": crdString, "name": crdString}),
		}
		for name, schema := range more {
			all[name] = schema
		}
		return crdObject(all)
	}
	conditions := crdObject(fields{"type": crdString, "status": crdString, "lastTransitionTime": {Type: "string", Format: "date-time"}})
	info := crdObject(fields{"podIP": crdString, "podUID": crdString, "nodeName": crdString})
	amounts := apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &apiextensionsv1.JSONSchemaProps{XIntOrString: true}}}
	return []*apiextensionsv1.CustomResourceDefinition{
		kruiseCRD("SandboxSet", kruise.Sets.Resource, built(fields{"replicas": crdInteger}),
			crdObject(fields{"replicas": crdInteger, "updateRevision": crdString})),
		kruiseCRD("Sandbox", kruise.Sandboxes.Resource,
			built(fields{"paused": {Type: "boolean"}, "shutdownTime": {Type: "string", Format: "date-time"}, "pauseTime": {Type: "string", Format: "date-time"}}),
			crdObject(fields{
				"phase": crdString, "podInfo": info, "recycledCount": crdInteger,
				"conditions": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &conditions}},
			})),
		kruiseCRD("SandboxClaim", kruise.Claims.Resource, crdObject(fields{
			"templateName": crdString, "replicas": crdInteger,
			"inplaceUpdate": crdObject(fields{"image": crdString, "resources": crdObject(fields{"requests": amounts, "limits": amounts})}),
		}), crdObject(fields{"phase": crdString, "claimedReplicas": crdInteger})),
		kruiseCRD("SandboxTemplate", kruise.Templates.Resource, built(nil), apiextensionsv1.JSONSchemaProps{}),
	}
}

// kruiseCRD has a status where there is a schema of one.
func kruiseCRD(kind, plural string, spec, status apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	version := apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1alpha1", Served: true, Storage: true}
	schema := crdObject(map[string]apiextensionsv1.JSONSchemaProps{
		"apiVersion": crdString, "kind": crdString, "metadata": {Type: "object"}, "spec": spec,
	})
	if status.Type != "" {
		schema.Properties["status"] = status
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	version.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kruise.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kruise.Group, Scope: apiextensionsv1.NamespaceScoped, Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural},
		},
	}
}
