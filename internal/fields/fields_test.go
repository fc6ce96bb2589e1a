package fields_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/fields"
)

func TestFields(t *testing.T) {
	object := map[string]any{
		"spec": map[string]any{"name": "a", "size": int64(1)},
		"list": []any{map[string]any{"b": "c"}, "no object", nil},
		"text": "no list",
	}
	for name, tc := range map[string]struct{ got, want any }{
		"a text":        {fields.String(object, "spec", "name"), "a"},
		"a number":      {fields.String(object, "spec", "size"), ""},
		"nothing":       {fields.String(object, "spec", "none", "name"), ""},
		"objects":       {fields.Objects(object, "list"), []map[string]any{{"b": "c"}}},
		"no list":       {fields.Objects(object, "text"), []map[string]any(nil)},
		"of nothing":    {fields.Objects(nil, "list"), []map[string]any(nil)},
		"no such field": {fields.Objects(object, "none"), []map[string]any(nil)},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want,+got):\n%s", name, diff)
		}
	}
}
