package jsonobject

import "slices"

// Cut takes the values of some keys out of an object, which is itself the value of a key of
// the whole: what is left has null in their place. The values share memory with the text.
// false says that this is not what was found: no such object or not exactly one, a value
// that is there twice, or what the API machinery has to judge.
func Cut(text []byte, object string, keys ...string) (left []byte, values map[string][]byte, ok bool) {
	p := &parser{text: text, without: true}
	p.blanks()
	c := &cutter{parser: p, keys: keys, values: map[string][]byte{}}
	found := 0
	whole := p.next('{') && c.members(func(key string) bool {
		if key != object {
			return c.pass(1)
		}
		found++
		p.blanks()
		return p.next('{') && c.members(c.cut)
	})
	p.blanks()
	if !whole || found != 1 || p.at != len(text) {
		return nil, nil, false
	}
	return append(c.left, text[c.kept:]...), c.values, true
}

type cutter struct {
	*parser
	keys   []string
	values map[string][]byte
	// left is the text up to kept, without what was cut.
	left []byte
	kept int
}

// members goes through an object behind its bracket. value goes past the value of a key.
func (c *cutter) members(value func(key string) bool) bool {
	c.blanks()
	if c.next('}') {
		return true
	}
	for {
		if !c.next('"') {
			return false
		}
		raw, plain, ok := c.raw()
		c.blanks()
		// A key that is written otherwise may be one that is looked for.
		if !ok || !plain || !c.next(':') || !value(string(raw)) {
			return false
		}
		c.blanks()
		if c.next('}') {
			return true
		}
		if !c.next(',') {
			return false
		}
		c.blanks()
	}
}

func (c *cutter) pass(depth int) bool {
	_, ok := c.value(depth, false)
	return ok
}

func (c *cutter) cut(key string) bool {
	if !slices.Contains(c.keys, key) {
		return c.pass(2)
	}
	c.blanks()
	from := c.at
	if c.values[key] != nil || !c.pass(2) {
		return false
	}
	c.values[key] = c.text[from:c.at]
	c.left = append(append(c.left, c.text[c.kept:from]...), "null"...)
	c.kept = c.at
	return true
}
