package revision

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// A canonical value is one of *object, *list, string, int64, float64, bool and, inside unknown lists only, nil.
type (
	object struct {
		fields []field // sorted by name
	}
	field struct {
		name  string
		value any
	}
	list struct {
		mergeKey string
		items    []any
	}
)

// get returns nil for a field that is not there.
func (o *object) get(name string) any {
	i, found := slices.BinarySearchFunc(o.fields, name, func(f field, name string) int { return strings.Compare(f.name, name) })
	if !found {
		return nil
	}
	return o.fields[i].value
}

// keys returns the merge key of each element, or nil and false unless every element has one and no two are equal.
func (l *list) keys() ([]any, bool) {
	if l.mergeKey == "" {
		return nil, false
	}
	keys := make([]any, 0, len(l.items))
	seen := make(map[any]struct{}, len(l.items))
	for _, item := range l.items {
		o, _ := item.(*object) // nothing else has a merge key
		key := o.get(l.mergeKey)
		if key == nil {
			return nil, false
		}
		if _, dup := seen[key]; dup {
			return nil, false
		}
		seen[key] = struct{}{}
		keys = append(keys, key)
	}
	return keys, true
}

// isLeaf says whether nothing can be below v. An empty object is a leaf: emptyDir: {} says something.
func isLeaf(v any) bool {
	switch v := v.(type) {
	case *object:
		return len(v.fields) == 0
	case *list:
		return len(v.items) == 0
	default:
		return true
	}
}

// compact returns v as canonical JSON.
func compact(v any) string {
	return string(appendJSON(nil, v))
}

func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case *object:
		b = append(b, '{')
		for i, f := range v.fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, f.name), ':')
			b = appendJSON(b, f.value)
		}
		return append(b, '}')
	case *list:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	case string:
		return appendString(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case bool:
		return strconv.AppendBool(b, v)
	case float64:
		// Canonical floats are finite, for which Marshal cannot fail.
		text, _ := json.Marshal(v)
		return append(b, text...)
	default:
		return append(b, "null"...)
	}
}

const hexDigits = "0123456789abcdef"

// appendString escapes what JSON demands and nothing else, so that the canonical bytes do not depend on an encoder's taste.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// leafText is the text that values in paths are compared with.
func leafText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return compact(v)
}

// Truncate keeps at most limit characters of s, the sign that it cut included.
func Truncate(s string, limit int) string {
	n, last := 0, 0
	for i := range s {
		if n == limit {
			return s[:last] + "…"
		}
		n, last = n+1, i
	}
	return s
}
