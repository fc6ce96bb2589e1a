package fields

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
