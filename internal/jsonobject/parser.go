package jsonobject

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// parser goes through a text once. Each method says whether it understood what it found;
// if it did not, nothing that was found before counts.
type parser struct{ *jsontext.Decoder }

// parserOf reads a text that nobody changes meanwhile.
func parserOf(text []byte) parser {
	// Of equal keys the last counts, as for the API machinery.
	return parser{jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))}
}

// place is where an object stands in an object of the API server. Only of its metadata
// something is left out.
type place int

const (
	elsewhere place = iota
	whole
	metadata
)

func parse(text []byte, as place) (map[string]any, bool) {
	p := parserOf(text)
	if p.PeekKind() != jsontext.KindBeginObject {
		return nil, false
	}
	object, ok := p.object(as)
	return object, ok && p.ends(text)
}

// ends reports whether there is nothing left but blanks.
func (p parser) ends(text []byte) bool {
	return len(bytes.Trim(text[p.InputOffset():], " \t\r\n")) == 0
}

// object is before its bracket.
func (p parser) object(is place) (map[string]any, bool) {
	if _, err := p.ReadToken(); err != nil {
		return nil, false
	}
	out := map[string]any{}
	for p.PeekKind() == jsontext.KindString {
		key, ok := p.string()
		if !ok {
			return nil, false
		}
		if is == metadata && key == "managedFields" {
			if p.SkipValue() != nil {
				return nil, false
			}
			continue
		}
		at := elsewhere
		if is == whole && key == "metadata" {
			at = metadata
		}
		if out[key], ok = p.value(at); !ok {
			return nil, false
		}
	}
	_, err := p.ReadToken()
	return out, err == nil
}

func (p parser) value(is place) (any, bool) {
	switch p.PeekKind() {
	case jsontext.KindBeginObject:
		return p.object(is)
	case jsontext.KindBeginArray:
		return p.array()
	case jsontext.KindString:
		return p.string()
	}
	raw, err := p.ReadValue()
	if err != nil {
		return nil, false
	}
	switch raw.Kind() {
	case jsontext.KindNull:
		return nil, true
	case jsontext.KindTrue:
		return true, true
	case jsontext.KindFalse:
		return false, true
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}

// array is before its bracket.
func (p parser) array() ([]any, bool) {
	if _, err := p.ReadToken(); err != nil {
		return nil, false
	}
	out := []any{}
	for p.PeekKind() != jsontext.KindEndArray {
		v, ok := p.value(elsewhere)
		if !ok {
			return nil, false
		}
		out = append(out, v)
	}
	_, err := p.ReadToken()
	return out, err == nil
}

func (p parser) string() (string, bool) {
	raw, err := p.ReadValue()
	if err != nil {
		return "", false
	}
	return unquote(raw)
}

func unquote(raw jsontext.Value) (string, bool) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err == nil
}
