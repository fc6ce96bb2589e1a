package revision

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A new version of k8s.io/api may bring a type that decodes itself, or a kind of field, that the canonical form does not know. It would
// be kept as it is; whether that is right is for a person to say, here.
func TestEveryTypeIsKnown(t *testing.T) {
	unmarshaler := reflect.TypeFor[json.Unmarshaler]()
	var found []string
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		if _, opaque := opaqueTypes[typ]; opaque || seen[typ] {
			return
		}
		if typ.Kind() != reflect.Pointer && reflect.PointerTo(typ).Implements(unmarshaler) {
			found = append(found, path+" decodes itself: "+typ.String())
			return
		}
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem(), path)
		case reflect.Struct:
			seen[typ] = true
			names := map[string]bool{}
			for i := range typ.NumField() {
				f := typ.Field(i)
				name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
				if names[name] || strings.Contains(options, "string") || f.Anonymous != (name == "" || options == "omitempty" && f.Anonymous) {
					found = append(found, path+"."+f.Name+" has a tag that the tables do not read: "+f.Tag.Get("json"))
				}
				if name != "" {
					names[name] = true
				}
				if f.Tag.Get("patchMergeKey") != "" && (f.Type.Kind() != reflect.Slice || f.Type.Elem().Kind() != reflect.Struct) {
					found = append(found, path+"."+f.Name+" has a merge key, and is no list of structs")
				}
				walk(f.Type, path+"."+f.Name)
			}
		case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		default:
			found = append(found, path+" is of an unknown kind: "+typ.String())
		}
	}
	walk(reflect.TypeFor[blueprintForm](), "")
	want := []string{".VolumeClaimTemplates.Status is of an unknown kind: interface {}"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("types that are kept as they are (-want,+got):\n%s", diff)
	}
}

func TestMergeKeysComeFromTheAPI(t *testing.T) {
	want := map[string]string{
		"containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name", "imagePullSecrets": "name",
		"hostAliases": "ip", "topologySpreadConstraints": "topologyKey", "schedulingGates": "name", "resourceClaims": "name",
		"evictionResponders": "name",
	}
	got := map[string]string{}
	for name, info := range podSpecInfo().fields {
		if info.mergeKey != "" {
			got[name] = info.mergeKey
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merge keys (-want,+got):\n%s", diff)
	}
}
