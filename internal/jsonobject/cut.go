package jsonobject

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Cut takes the values of some keys out of an object, which is itself the value of a key of
// the whole: what is left has null in their place. The values share memory with the text.
// false says that this is not what was found: no such object or not exactly one, a value
// that is there twice, or what the API machinery has to judge.
func Cut(text []byte, object string, keys ...string) (left []byte, values map[string][]byte, ok bool) {
	c := &cutter{parser: parserOf(text), text: text, keys: keys, values: map[string][]byte{}}
	found := 0
	whole := c.members(func(key string) bool {
		if key != object {
			return c.SkipValue() == nil
		}
		found++
		return c.members(c.cut)
	})
	if !whole || found != 1 || !c.ends(text) {
		return nil, nil, false
	}
	return append(c.left, text[c.kept:]...), c.values, true
}

type cutter struct {
	parser
	text   []byte
	keys   []string
	values map[string][]byte
	// left is the text up to kept, without what was cut.
	left []byte
	kept int64
}

// members goes through an object. value goes past the value of a key.
func (c *cutter) members(value func(key string) bool) bool {
	if t, err := c.ReadToken(); err != nil || t.Kind() != jsontext.KindBeginObject {
		return false
	}
	for c.PeekKind() == jsontext.KindString {
		if key, ok := c.string(); !ok || !value(key) {
			return false
		}
	}
	_, err := c.ReadToken()
	return err == nil
}

func (c *cutter) cut(key string) bool {
	if !slices.Contains(c.keys, key) {
		return c.SkipValue() == nil
	}
	value, err := c.ReadValue()
	if err != nil || c.values[key] != nil {
		return false
	}
	to := c.InputOffset()
	from := to - int64(len(value))
	c.values[key] = c.text[from:to]
	c.left = append(append(c.left, c.text[c.kept:from]...), "null"...)
	c.kept = to
	return true
}
