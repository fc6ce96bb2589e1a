package jsonobject

import (
	"strconv"
	"unicode/utf8"
)

const (
	// maxDepth is far more than objects have.
	maxDepth = 100
	// maxDigits of an integer fit into an int64, whatever they are.
	maxDigits = 18
	// maxInterned is how long a key may be to be looked up.
	maxInterned = 32
)

// parser goes through a text once. Each method says whether it understood what it found;
// if it did not, nothing that was found before counts.
type parser struct {
	text []byte
	at   int
	// without is set while what is read is not wanted.
	without bool
}

func parse(text []byte, unmanaged bool) (map[string]any, bool) {
	p := &parser{text: text}
	p.blanks()
	if !p.next('{') {
		return nil, false
	}
	object, ok := p.object(0, unmanaged)
	p.blanks()
	return object, ok && p.at == len(text)
}

func (p *parser) blanks() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\n', '\r', '\t':
			p.at++
		default:
			return
		}
	}
}

// next goes past one character, if it is there.
func (p *parser) next(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// word goes past a literal.
func (p *parser) word(w string) bool {
	if len(p.text)-p.at < len(w) || string(p.text[p.at:p.at+len(w)]) != w {
		return false
	}
	p.at += len(w)
	return true
}

// object is behind its bracket. What is unmanaged is the whole object, or its metadata.
func (p *parser) object(depth int, unmanaged bool) (map[string]any, bool) {
	if depth >= maxDepth {
		return nil, false
	}
	var out map[string]any
	if !p.without {
		out = map[string]any{}
	}
	p.blanks()
	if p.next('}') {
		return out, true
	}
	for {
		if !p.member(out, depth, unmanaged) {
			return nil, false
		}
		p.blanks()
		if p.next('}') {
			return out, true
		}
		if !p.next(',') {
			return nil, false
		}
		p.blanks()
	}
}

// member reads one key and its value.
func (p *parser) member(into map[string]any, depth int, unmanaged bool) bool {
	if !p.next('"') {
		return false
	}
	key, ok := p.key()
	if !ok {
		return false
	}
	p.blanks()
	if !p.next(':') {
		return false
	}
	if unmanaged && depth == 1 && key == "managedFields" {
		return p.skip(depth)
	}
	value, ok := p.value(depth+1, unmanaged && key == "metadata")
	if ok && !p.without {
		into[key] = value
	}
	return ok
}

// skip reads a value that nobody wants.
func (p *parser) skip(depth int) bool {
	p.without = true
	_, ok := p.value(depth+1, false)
	p.without = false
	return ok
}

func (p *parser) value(depth int, unmanaged bool) (any, bool) {
	p.blanks()
	if p.at == len(p.text) {
		return nil, false
	}
	switch p.text[p.at] {
	case '{':
		p.at++
		return wanted(p.object(depth, unmanaged))
	case '[':
		p.at++
		return wanted(p.array(depth))
	case '"':
		p.at++
		return wanted(p.string())
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	}
	return p.number()
}

func wanted[T any](v T, ok bool) (any, bool) { return v, ok }

// array is behind its bracket.
func (p *parser) array(depth int) ([]any, bool) {
	if depth >= maxDepth {
		return nil, false
	}
	out := []any{}
	p.blanks()
	if p.next(']') {
		return out, true
	}
	for {
		v, ok := p.value(depth+1, false)
		if !ok {
			return nil, false
		}
		if !p.without {
			out = append(out, v)
		}
		p.blanks()
		if p.next(']') {
			return out, true
		}
		if !p.next(',') {
			return nil, false
		}
	}
}

// number understands what fits an int64 for certain, and what is written as a fraction.
func (p *parser) number() (any, bool) {
	start := p.at
	negative := p.next('-')
	digits := p.at
	var n int64
	for p.at < len(p.text) && isDigit(p.text[p.at]) {
		n = 10*n + int64(p.text[p.at]-'0')
		p.at++
	}
	count := p.at - digits
	if count == 0 || count > maxDigits || count > 1 && p.text[digits] == '0' {
		return nil, false
	}
	if p.at < len(p.text) {
		switch p.text[p.at] {
		case '.', 'e', 'E':
			return p.fraction(start)
		}
	}
	if negative {
		n = -n
	}
	return n, true
}

// fraction is behind the digits in front of its point, or of its exponent.
func (p *parser) fraction(start int) (any, bool) {
	if p.next('.') && !p.digits() {
		return nil, false
	}
	if p.next('e') || p.next('E') {
		if !p.next('+') {
			p.next('-')
		}
		if !p.digits() {
			return nil, false
		}
	}
	f, err := strconv.ParseFloat(string(p.text[start:p.at]), 64)
	return f, err == nil
}

// digits goes past one or more.
func (p *parser) digits() bool {
	from := p.at
	for p.at < len(p.text) && isDigit(p.text[p.at]) {
		p.at++
	}
	return p.at > from
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// key is a string that is probably known.
func (p *parser) key() (string, bool) {
	raw, plain, ok := p.raw()
	if !ok || !plain {
		return p.unescape(raw, ok)
	}
	if len(raw) <= maxInterned {
		// The compiler makes no string for a look-up.
		if known, ok := keys[string(raw)]; ok {
			return known, true
		}
	}
	if p.without {
		return "", true
	}
	return string(raw), true
}

// string is behind its quote.
func (p *parser) string() (string, bool) {
	raw, plain, ok := p.raw()
	if !ok || !plain {
		return p.unescape(raw, ok)
	}
	if p.without {
		return "", true
	}
	return string(raw), true
}

// raw goes past a string. A plain one stands for itself.
func (p *parser) raw() (raw []byte, plain, ok bool) {
	from := p.at
	plain = true
	ascii := true
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"':
			raw = p.text[from:p.at]
			p.at++
			return raw, plain, ascii || utf8.Valid(raw)
		case c == '\\':
			plain = false
			p.at++
		case c < ' ':
			return nil, false, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
		p.at++
	}
	return nil, false, false
}

// unescape understands every escape but those of surrogates.
func (p *parser) unescape(raw []byte, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		if raw[i] == 'u' {
			r, ok := hex(raw[i+1:])
			if !ok {
				return "", false
			}
			out = utf8.AppendRune(out, r)
			i += 4
			continue
		}
		c := escapes[raw[i]]
		if c == 0 {
			return "", false
		}
		out = append(out, c)
	}
	return string(out), true
}

// escapes are what stands for one character; 0 for what does not.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex reads four digits. Halves of a surrogate pair are none of ours.
func hex(digits []byte) (rune, bool) {
	if len(digits) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(digits[:4]), 16, 32)
	r := rune(n)
	return r, err == nil && utf8.ValidRune(r)
}
