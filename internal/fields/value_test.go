package fields_test

import (
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
