package fields_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/freshbind/freshbind/internal/fields"
)

func TestBytes(t *testing.T) {
	small := fields.Bytes(map[string]any{"a": "b"})
	for name, v := range map[string]any{
		"a longer value":   map[string]any{"a": strings.Repeat("b", 1000)},
		"a longer key":     map[string]any{strings.Repeat("a", 1000): "b"},
		"a list of values": map[string]any{"a": []any{strings.Repeat("b", 500), map[string]any{"c": strings.Repeat("b", 500)}}},
	} {
		if got := fields.Bytes(v); got < small+990 {
			t.Errorf("%s: %d bytes, and %d without it", name, got, small)
		}
	}
}

// Of each pair of values it says what reflect.DeepEqual says.
func TestEqual(t *testing.T) {
	values := func() []any {
		return []any{
			nil, true, false, int64(0), int64(1), float64(0), 1.5, "", "a", 1, uint8(1), []string{"a"}, map[string]any(nil), map[string]any{}, []any(nil), []any{},
			map[string]any{"a": "b"}, map[string]any{"a": nil}, map[string]any{"b": nil}, map[string]any{"a": "b", "c": int64(1)}, map[string]any{"a": "b", "c": 1.0},
			[]any{"a"}, []any{"a", "b"}, []any{"b", "a"}, []any{nil}, []any{map[string]any{"a": []any{int64(1)}}}, []any{map[string]any{"a": []any{int64(2)}}},
			map[string]any{"a": map[string]any{"b": []any{}}}, map[string]any{"a": map[string]any{"b": []any(nil)}}, map[string]any{"a": map[string]any{"b": map[string]any{}}},
		}
	}
	for i, a := range values() {
		for k, b := range values() {
			if got, want := fields.Equal(a, b), reflect.DeepEqual(a, b); got != want {
				t.Errorf("Equal(%#v, %#v) = %t, want %t (values %d and %d)", a, b, got, want, i, k)
			}
		}
	}
}

func TestObject(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"a": "b"}, "null": nil, "list": []any{}}
	spec, err := fields.Object(object, "spec")
	if err != nil || fields.String(spec, "a") != "b" {
		t.Errorf("Object(spec) = %v, %v", spec, err)
	}
	if none, err := fields.Object(object, "none"); none != nil || err != nil {
		t.Errorf("Object(none) = %v, %v, want nothing", none, err)
	}
	for _, key := range []string{"null", "list"} {
		if _, err := fields.Object(object, key); err == nil || !strings.HasPrefix(err.Error(), key+": ") {
			t.Errorf("Object(%s) error = %v, want one that names it", key, err)
		}
	}
}
