package checker

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
)

// fieldsOf remembers jsonFields by type: every Sandbox event walks the whole PodSpec.
var fieldsOf sync.Map

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// unknownLeaves returns what raw holds at paths for which t has no field, by path. A null says the same as nothing.
func unknownLeaves(raw any, t reflect.Type) map[string]any {
	out := map[string]any{}
	walkUnknown(raw, t, "", out)
	return out
}

func walkUnknown(raw any, t reflect.Type, path string, out map[string]any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if raw == nil || reflect.PointerTo(t).Implements(unmarshaler) {
		return
	}
	switch value := raw.(type) {
	case map[string]any:
		walkUnknownMap(value, t, path, out)
	case []any:
		if t.Kind() == reflect.Slice {
			for i, item := range value {
				walkUnknown(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i), out)
			}
		}
	}
}

func walkUnknownMap(value map[string]any, t reflect.Type, path string, out map[string]any) {
	switch t.Kind() {
	case reflect.Map:
		for key, item := range value {
			walkUnknown(item, t.Elem(), join(path, key), out)
		}
	case reflect.Struct:
		fields := jsonFields(t)
		for key, item := range value {
			if field, ok := fields[key]; ok {
				walkUnknown(item, field, join(path, key), out)
			} else if item != nil {
				out[join(path, key)] = item
			}
		}
	}
}

// jsonFields maps the JSON names of a struct's fields to their types, with those of inlined structs.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	if known, ok := fieldsOf.Load(t); ok {
		fields, _ := known.(map[string]reflect.Type)
		return fields
	}
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && (f.Anonymous || strings.Contains(options, "inline")) {
			maps.Copy(out, jsonFields(deref(f.Type)))
		} else if name != "" && name != "-" {
			out[name] = f.Type
		}
	}
	fieldsOf.Store(t, out)
	return out
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
