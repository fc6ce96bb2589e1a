package revision

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// canonicalizer makes canonical values out of unstructured JSON. In redacted documents every scalar but the merge keys of lists is a
// digest, whatever its type.
type canonicalizer struct {
	redacted bool
}

// value returns the canonical form of in, which a field of type t holds.
func (c canonicalizer) value(t *typeInfo, in any) (any, error) {
	if in == nil {
		return zeroValue(t), nil
	}
	switch t.kind {
	case kindStruct:
		return c.structure(t, in, "")
	case kindMap:
		return c.dictionary(t, in)
	case kindList:
		return c.sequence(t, in)
	case kindRaw:
		return c.raw(in)
	default:
		if c.redacted {
			return canonicalDigest(in)
		}
		return scalar(t, in)
	}
}

func scalar(t *typeInfo, in any) (any, error) {
	switch t.kind {
	case kindString:
		return canonicalString(in)
	case kindBool:
		if _, ok := in.(bool); !ok {
			return nil, wrongType(in, "true or false")
		}
		return in, nil
	case kindInt:
		return canonicalInt(in, t.bits)
	case kindQuantity:
		return canonicalQuantity(in)
	case kindTime:
		return canonicalTime(in)
	default:
		return canonicalIntOrString(in)
	}
}

// structure takes the name of the list's merge key if in is an element of a list that has one.
func (c canonicalizer) structure(t *typeInfo, in any, mergeKey string) (*object, error) {
	m, ok := in.(map[string]any)
	if !ok {
		return nil, wrongType(in, "an object")
	}
	out := &object{fields: make([]field, 0, len(m))}
	for name, v := range m {
		if v == nil {
			continue
		}
		info, known := t.fields[name]
		if !known {
			unknown, err := c.unknown(name, v)
			if err != nil {
				return nil, err
			}
			out.fields = append(out.fields, unknown)
			continue
		}
		inner := c
		if name == mergeKey {
			inner.redacted = false
		}
		cv, err := inner.value(info, v)
		if err != nil {
			return nil, atField(name, err)
		}
		if info.pointer || !isZero(info, cv) {
			out.fields = append(out.fields, field{name, cv})
		}
	}
	out.sort()
	return out, nil
}

func (c canonicalizer) dictionary(t *typeInfo, in any) (any, error) {
	m, ok := in.(map[string]any)
	if !ok {
		return nil, wrongType(in, "an object")
	}
	out := &object{fields: make([]field, 0, len(m))}
	for name, v := range m {
		if !utf8.ValidString(name) {
			return nil, invalidKey(name)
		}
		if v == nil && t.elem.kind == kindRaw {
			continue
		}
		cv, err := c.value(t.elem, v)
		if err != nil {
			return nil, atField(name, err)
		}
		out.fields = append(out.fields, field{name, cv})
	}
	out.sort()
	return out, nil
}

func (c canonicalizer) sequence(t *typeInfo, in any) (any, error) {
	items, ok := in.([]any)
	if !ok {
		return nil, wrongType(in, "a list")
	}
	out := &list{mergeKey: t.mergeKey, items: make([]any, 0, len(items))}
	for i, item := range items {
		var cv any
		var err error
		if t.elem.kind == kindStruct && item != nil {
			cv, err = c.structure(t.elem, item, t.mergeKey)
		} else {
			cv, err = c.value(t.elem, item)
		}
		if err != nil {
			return nil, atIndex(i, err)
		}
		out.items = append(out.items, cv)
	}
	return out, nil
}

func (c canonicalizer) unknown(name string, v any) (field, error) {
	if !utf8.ValidString(name) {
		return field{}, invalidKey(name)
	}
	cv, err := c.raw(v)
	if err != nil {
		return field{}, atField(name, err)
	}
	return field{name, cv}, nil
}

func (c canonicalizer) raw(in any) (any, error) {
	switch in := in.(type) {
	case map[string]any:
		return c.rawObject(in)
	case []any:
		out := &list{items: make([]any, 0, len(in))}
		for i, item := range in {
			cv, err := c.raw(item)
			if err != nil {
				return nil, atIndex(i, err)
			}
			out.items = append(out.items, cv)
		}
		return out, nil
	}
	if c.redacted {
		return canonicalDigest(in)
	}
	switch in.(type) {
	case nil, bool:
		return in, nil
	case string:
		return canonicalString(in)
	}
	v, ok := number(in)
	if !ok {
		return nil, wrongType(in, "JSON")
	}
	return v, nil
}

func (c canonicalizer) rawObject(in map[string]any) (any, error) {
	out := &object{fields: make([]field, 0, len(in))}
	for name, v := range in {
		if v == nil {
			continue
		}
		f, err := c.unknown(name, v)
		if err != nil {
			return nil, err
		}
		out.fields = append(out.fields, f)
	}
	out.sort()
	return out, nil
}

func (o *object) sort() {
	slices.SortFunc(o.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
}

func canonicalString(in any) (any, error) {
	s, ok := in.(string)
	if !ok {
		return nil, wrongType(in, "a string")
	}
	if !utf8.ValidString(s) {
		return nil, problemf("must be valid UTF-8")
	}
	return in, nil
}

func invalidKey(name string) error {
	return problemf("the key %q is not valid UTF-8", name)
}

// isZero says whether encoding/json and the API conventions write v as they write an absent field.
func isZero(t *typeInfo, v any) bool {
	switch v := v.(type) {
	case *object:
		return len(v.fields) == 0
	case *list:
		return len(v.items) == 0
	case bool:
		return !v
	case int64:
		return v == 0
	case string:
		switch t.kind {
		case kindString:
			return v == ""
		case kindQuantity:
			return v == zeroQuantity
		case kindTime:
			return v == zeroTime
		}
	}
	return false
}

// zeroValue is what decoding null into an element of a list or map gives.
func zeroValue(t *typeInfo) any {
	switch t.kind {
	case kindStruct, kindMap:
		return &object{}
	case kindList:
		return &list{mergeKey: t.mergeKey}
	case kindBool:
		return false
	case kindInt, kindIntOrString:
		return int64(0)
	case kindQuantity:
		return zeroQuantity
	case kindTime:
		return zeroTime
	case kindString:
		return ""
	default:
		return nil
	}
}
