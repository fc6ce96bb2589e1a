package revision

import (
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type kind uint8

const (
	kindRaw kind = iota // no type is known: kept as it is
	kindStruct
	kindMap
	kindList
	kindString
	kindBool
	kindInt
	kindQuantity
	kindTime
	kindIntOrString
)

// typeInfo is what the canonical form has to know about one field of the API types.
type typeInfo struct {
	kind     kind
	pointer  bool // the zero value is not absence
	bits     int
	fields   map[string]*typeInfo
	elem     *typeInfo
	mergeKey string // lists only: the field that identifies an element, if the API names one
}

// blueprintForm has the fields of upstream's SandboxBlueprint (agent-sandbox api/v1beta1/sandbox_types.go) that can make a sandbox stale.
// It is only looked at by reflection.
type blueprintForm struct {
	PodTemplate          podTemplateForm           `json:"podTemplate"`
	VolumeClaimTemplates []volumeClaimTemplateForm `json:"volumeClaimTemplates,omitempty"`
	Service              *bool                     `json:"service,omitempty"`
}

type podTemplateForm struct {
	Spec corev1.PodSpec `json:"spec"`
}

type volumeClaimTemplateForm struct {
	Metadata volumeClaimTemplateMetadata      `json:"metadata"`
	Spec     corev1.PersistentVolumeClaimSpec `json:"spec"`
	// Encoders of whole claims write an empty status.
	Status map[string]any `json:"status,omitempty"`
}

type volumeClaimTemplateMetadata struct {
	Name        string            `json:"name,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

var blueprintInfo = sync.OnceValue(func() *typeInfo {
	tables := fieldTables{}
	return tables.of(reflect.TypeFor[blueprintForm]())
})

// podSpecInfo is the type at podTemplate.spec.
func podSpecInfo() *typeInfo {
	return blueprintInfo().fields[podTemplateKey].fields[specKey]
}

// opaqueTypes decode themselves, so reflection over their fields would mislead.
var opaqueTypes = map[reflect.Type]kind{
	reflect.TypeFor[resource.Quantity]():  kindQuantity,
	reflect.TypeFor[metav1.Time]():        kindTime,
	reflect.TypeFor[intstr.IntOrString](): kindIntOrString,
	reflect.TypeFor[metav1.FieldsV1]():    kindRaw,
}

// fieldTables has one table of fields by JSON name for each struct type.
type fieldTables map[reflect.Type]map[string]*typeInfo

func (ft fieldTables) of(t reflect.Type) *typeInfo {
	if k, ok := opaqueTypes[t]; ok {
		return &typeInfo{kind: k}
	}
	switch t.Kind() {
	case reflect.Pointer:
		info := *ft.of(t.Elem())
		info.pointer = true
		return &info
	case reflect.Struct:
		return &typeInfo{kind: kindStruct, fields: ft.fieldsOf(t)}
	case reflect.Map:
		return &typeInfo{kind: kindMap, elem: ft.of(t.Elem())}
	case reflect.Slice:
		return &typeInfo{kind: kindList, elem: ft.of(t.Elem())}
	case reflect.String:
		return &typeInfo{kind: kindString}
	case reflect.Bool:
		return &typeInfo{kind: kindBool}
	case reflect.Int32, reflect.Int64:
		return &typeInfo{kind: kindInt, bits: t.Bits()}
	default:
		return &typeInfo{kind: kindRaw}
	}
}

func (ft fieldTables) fieldsOf(t reflect.Type) map[string]*typeInfo {
	if fields, ok := ft[t]; ok {
		return fields
	}
	fields := make(map[string]*typeInfo, t.NumField())
	ft[t] = fields
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" { // embedded
			for inlined, info := range ft.fieldsOf(f.Type) {
				fields[inlined] = info
			}
			continue
		}
		info := ft.of(f.Type)
		info.mergeKey = f.Tag.Get("patchMergeKey")
		fields[name] = info
	}
	return fields
}
