package revision

import (
	"strconv"
	"strings"
)

// step is one step from a canonical value to one inside it: into a field, or into an element of a list.
type step struct {
	name    string // of the field
	element bool
	index   int
	value   any // the element, for selectors by its fields
	// mergeKey is that of the list; key is the element's, if the elements are told apart by it and not by their position.
	mergeKey string
	key      any
}

// segment is the step in the grammar of paths.
func (s step) segment() string {
	switch {
	case !s.element:
		return fieldSegment(s.name)
	case s.key != nil:
		return "[" + s.mergeKey + "=" + valueText(leafText(s.key)) + "]"
	default:
		return "[" + strconv.Itoa(s.index) + "]"
	}
}

func pathText(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		segment := s.segment()
		if b.Len() > 0 && segment[0] != '[' {
			b.WriteByte('.')
		}
		b.WriteString(segment)
	}
	return b.String()
}

func joinPath(parent, child string) string {
	if parent == "" || child == "" || child[0] == '[' {
		return parent + child
	}
	return parent + "." + child
}

// fieldSegment quotes what the grammar does not take as it is.
func fieldSegment(name string) string {
	if name != "" && strings.IndexFunc(name, func(r rune) bool { return !isFieldRune(r) }) < 0 {
		return name
	}
	return "[" + string(appendString(nil, name)) + "]"
}

func valueText(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !isBareRune(r) }) < 0 {
		return s
	}
	return string(appendString(nil, s))
}

func isFieldRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

func isBareRune(r rune) bool {
	return r > ' ' && r < 0x7f && !strings.ContainsRune(`,[]="\*`, r)
}
