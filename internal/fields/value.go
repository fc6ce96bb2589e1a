package fields

// Equal reports whether two values are the same that were read from JSON in the same
// way.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, is := b.(map[string]any)
		if !is || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			if other, has := b[key]; !has || !Equal(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, is := b.([]any)
		if !is || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

// overhead is about what a decoded value needs beside its text.
const overhead = 32

// Bytes is about what a decoded value needs in memory.
func Bytes(v any) int {
	n := overhead
	switch v := v.(type) {
	case string:
		n += len(v)
	case []any:
		for _, item := range v {
			n += Bytes(item)
		}
	case map[string]any:
		for key, item := range v {
			n += overhead + len(key) + Bytes(item)
		}
	}
	return n
}
