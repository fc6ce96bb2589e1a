package fields_test

import (
	"strings"
	"testing"

	"github.com/freshbind/freshbind/internal/fields"
)

func TestEqual(t *testing.T) {
	object := func(pairs ...any) map[string]any {
		out := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}
		return out
	}
	cases := map[string]struct {
		a, b any
		want bool
	}{
		"nothing":                   {nil, nil, true},
		"texts":                     {"a", "a", true},
		"other texts":               {"a", "b", false},
		"a number and a text":       {int64(1), "1", false},
		"objects":                   {object("a", object("b", []any{"c", int64(1), true, nil})), object("a", object("b", []any{"c", int64(1), true, nil})), true},
		"another value deep inside": {object("a", object("b", []any{"c"})), object("a", object("b", []any{"d"})), false},
		"one field more":            {object("a", "b"), object("a", "b", "c", "d"), false},
		"another field, both null":  {object("a", nil), object("b", nil), false},
		"an object and a list":      {object(), []any{}, false},
		"a text and an object":      {"a", object(), false},
		"null and an empty list":    {nil, []any{}, false},
		"another order":             {[]any{"a", "b"}, []any{"b", "a"}, false},
		"one item more":             {[]any{"a"}, []any{"a", "b"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if ab, ba := fields.Equal(tc.a, tc.b), fields.Equal(tc.b, tc.a); ab != tc.want || ba != tc.want {
				t.Errorf("Equal() = %t, and the other way round %t, want %t", ab, ba, tc.want)
			}
		})
	}
}

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
