package fakekruise

import (
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// What the schemas are made of. Templates of Pods and volumes are whatever somebody
// writes, as upstream.
var (
	crdString  = apiextensionsv1.JSONSchemaProps{Type: "string"}
	crdTime    = apiextensionsv1.JSONSchemaProps{Type: "string", Format: "date-time"}
	crdInteger = apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32"}
	crdLong    = apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	crdBool    = apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	crdAny     = apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: ptr.To(true)}
	crdStrings = apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &crdString}}
	crdMap     = apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &crdString}}
	crdAmounts = apiextensionsv1.JSONSchemaProps{
		Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &apiextensionsv1.JSONSchemaProps{XIntOrString: true}},
	}
)

type crdFields = map[string]apiextensionsv1.JSONSchemaProps

func crdObject(properties crdFields) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
}

func crdList(of apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &of}}
}

// CRDs define the kinds, as far as anybody here reads or writes them.
func CRDs() []*apiextensionsv1.CustomResourceDefinition {
	built := func(more crdFields) apiextensionsv1.JSONSchemaProps {
		all := crdFields{
			"template": crdAny, "volumeClaimTemplates": crdAny, "persistentContents": crdStrings,
			"runtimes":      crdList(crdObject(crdFields{"name": crdString})),
			"pauseStrategy": crdObject(crdFields{"type": crdString}),
			"templateRef":   crdObject(crdFields{"apiVersion": crdString, "kind": crdString, "name": crdString}),
		}
		maps.Copy(all, more)
		return crdObject(all)
	}
	condition := crdObject(crdFields{"type": crdString, "status": crdString, "reason": crdString, "message": crdString, "lastTransitionTime": crdTime})
	info := crdObject(crdFields{"podIP": crdString, "podUID": crdString, "nodeName": crdString})
	claimStatus := crdObject(crdFields{
		"phase": crdString, "claimedReplicas": crdInteger, "message": crdString, "observedGeneration": crdLong, "claimStartTime": crdTime, "completionTime": crdTime,
	})
	return []*apiextensionsv1.CustomResourceDefinition{
		crd("SandboxSet", Sets,
			built(crdFields{
				"replicas":       crdInteger,
				"updateStrategy": crdObject(crdFields{"maxUnavailable": {XIntOrString: true}}),
			}),
			crdObject(crdFields{
				"replicas": crdInteger, "availableReplicas": crdInteger, "updateRevision": crdString, "observedGeneration": crdLong,
			})),
		crd("Sandbox", Sandboxes,
			built(crdFields{"paused": crdBool, "shutdownTime": crdTime, "pauseTime": crdTime}),
			crdObject(crdFields{
				"phase": crdString, "podInfo": info, "recycledCount": crdInteger, "observedGeneration": crdLong, "conditions": crdList(condition),
			})),
		crd("SandboxClaim", Claims, crdObject(crdFields{
			"templateName": crdString, "replicas": crdInteger, "claimTimeout": crdString, "createOnNoStock": crdBool, "labels": crdMap, "annotations": crdMap,
			"inplaceUpdate": crdObject(crdFields{"image": crdString, "resources": crdObject(crdFields{"requests": crdAmounts, "limits": crdAmounts})}),
		}), claimStatus),
		crd("SandboxTemplate", Templates, built(nil), apiextensionsv1.JSONSchemaProps{}),
	}
}

// crd has a status where there is a schema of one.
func crd(kind string, of schema.GroupVersionResource, spec, status apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	version := apiextensionsv1.CustomResourceDefinitionVersion{Name: of.Version, Served: true, Storage: true}
	schema := crdObject(crdFields{"apiVersion": crdString, "kind": crdString, "metadata": {Type: "object"}, "spec": spec})
	if status.Type != "" {
		schema.Properties["status"] = status
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	version.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: of.Resource + "." + of.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: of.Group, Scope: apiextensionsv1.NamespaceScoped, Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: of.Resource},
		},
	}
}
