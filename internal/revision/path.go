package revision

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// acceptedRoots is part of the messages that users read.
const acceptedRoots = "podTemplate.spec.<field>, volumeClaimTemplates or service"

// ParsePaths parses paths in the grammar of the package comment. The error names the path and what is accepted.
func ParsePaths(paths ...string) (PathSet, error) {
	set := PathSet{patterns: make([]pattern, 0, len(paths))}
	for _, text := range paths {
		p, err := parsePattern(text)
		if err != nil {
			return PathSet{}, fmt.Errorf("path %q: %w", text, err)
		}
		set.patterns = append(set.patterns, p)
	}
	return set, nil
}

// What one list of paths may hold. Each path is held against each leaf that is more than was asked for.
const (
	MaxPaths     = 64
	MaxPathBytes = 8 << 10
)

// ParseList parses a list of paths, as an annotation holds it, of at most MaxPaths paths in MaxPathBytes bytes.
func ParseList(list string) (PathSet, error) {
	if len(list) > MaxPathBytes {
		return PathSet{}, fmt.Errorf("%d bytes are too many, at most %d: %s", len(list), MaxPathBytes, useFewer)
	}
	paths := SplitPaths(list)
	if len(paths) > MaxPaths {
		return PathSet{}, fmt.Errorf("%d paths are too many, at most %d: %s", len(paths), MaxPaths, useFewer)
	}
	return ParsePaths(paths...)
}

const useFewer = "name the object or the list above them in their place, or write [*] for every element"

// SplitPaths cuts a list of paths, as an annotation holds it, at commas and white space outside of quotes and brackets.
func SplitPaths(list string) []string {
	var paths []string
	start, depth, quoted := 0, 0, false
	add := func(end int) {
		if path := strings.TrimSpace(list[start:end]); path != "" {
			paths = append(paths, path)
		}
		start = end + 1
	}
	for i := 0; i < len(list); i++ {
		c := list[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth <= 0 && strings.IndexByte(", \t\r\n", c) >= 0:
			add(i)
		}
	}
	add(len(list))
	return paths
}

// pathParser reads one path from the left.
type pathParser struct {
	rest string
}

func parsePattern(text string) (pattern, error) {
	p := pathParser{rest: text}
	var out pattern
	for {
		s, err := p.next(len(out.segments) == 0)
		if err != nil {
			return pattern{}, err
		}
		out.segments = append(out.segments, s)
		if p.rest == "" {
			break
		}
		if p.take('=') {
			value, err := p.value()
			if err != nil {
				return pattern{}, err
			}
			if p.rest != "" {
				return pattern{}, fmt.Errorf("unexpected %q behind the value", p.rest)
			}
			out.value = &value
			break
		}
	}
	return out, checkRoot(text, out)
}

func (p *pathParser) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *pathParser) next(first bool) (segment, error) {
	if !first && p.take('[') {
		return p.brackets()
	}
	if !first && !p.take('.') {
		return segment{}, fmt.Errorf(`unexpected %q: a field is followed by ".", "[" or "="`, p.rest)
	}
	name := p.field()
	if name == "" {
		return segment{}, fmt.Errorf(`a field name is missing before %q: names are made of A-Z a-z 0-9 _ -, others are written ["name"]`, p.rest)
	}
	return segment{kind: segmentField, name: name}, nil
}

func (p *pathParser) field() string {
	end := strings.IndexFunc(p.rest, func(r rune) bool { return !isFieldRune(r) })
	if end < 0 {
		end = len(p.rest)
	}
	name := p.rest[:end]
	p.rest = p.rest[end:]
	return name
}

func (p *pathParser) brackets() (segment, error) {
	s, err := p.selector()
	if err != nil {
		return segment{}, err
	}
	if !p.take(']') {
		return segment{}, fmt.Errorf(`"]" is missing before %q`, p.rest)
	}
	return s, nil
}

func (p *pathParser) selector() (segment, error) {
	if p.take('*') {
		return segment{kind: segmentAny}, nil
	}
	if strings.HasPrefix(p.rest, `"`) {
		name, err := p.quoted()
		return segment{kind: segmentField, name: name}, err
	}
	name := p.field()
	if p.take('=') {
		if name == "" {
			return segment{}, fmt.Errorf(`a field name is missing before "="`)
		}
		value, err := p.value()
		return segment{kind: segmentSelector, name: name, value: value}, err
	}
	index, err := strconv.Atoi(name)
	if err != nil || index < 0 {
		return segment{}, fmt.Errorf(`%q in brackets: accepted are *, a number, <field>=<value> and a quoted key`, name)
	}
	return segment{kind: segmentIndex, index: index}, nil
}

func (p *pathParser) value() (valuePattern, error) {
	if strings.HasPrefix(p.rest, `"`) {
		text, err := p.quoted()
		return valuePattern{text: text, quoted: true}, err
	}
	end := strings.IndexFunc(p.rest, func(r rune) bool { return !isBareRune(r) })
	if end < 0 {
		end = len(p.rest)
	}
	v := valuePattern{text: p.rest[:end]}
	p.rest = p.rest[end:]
	v.glob = p.take('*')
	if v.text == "" && !v.glob {
		return valuePattern{}, fmt.Errorf(`a value is missing before %q: write "" for the empty string, and quotes around a value with white space or any of , [ ] = " \ *`, p.rest)
	}
	return v, nil
}

func (p *pathParser) quoted() (string, error) {
	for i := 1; i < len(p.rest); i++ {
		switch p.rest[i] {
		case '\\':
			i++
		case '"':
			var s string
			if err := json.Unmarshal([]byte(p.rest[:i+1]), &s); err != nil {
				return "", fmt.Errorf("%s is not a JSON string", p.rest[:i+1])
			}
			p.rest = p.rest[i+1:]
			return s, nil
		}
	}
	return "", fmt.Errorf("the quotes around %s are not closed", p.rest)
}

// checkRoot refuses paths that can match nothing, and those that would allow any addition to a pod.
func checkRoot(text string, p pattern) error {
	isField := func(i int, name string) bool {
		return len(p.segments) > i && p.segments[i].kind == segmentField && (name == "" || p.segments[i].name == name)
	}
	switch {
	case isField(0, podTemplateKey) && isField(1, specKey) && isField(2, ""):
		return nil
	case isField(0, volumeClaimTemplatesKey):
		return nil
	case isField(0, serviceKey) && len(p.segments) == 1:
		return nil
	}
	err := fmt.Errorf("accepted are paths that begin with %s", acceptedRoots)
	if guess := guessPath(text); guess != "" {
		err = fmt.Errorf("%w; did you mean %q?", err, guess)
	}
	return err
}

func guessPath(text string) string {
	trimmed := strings.TrimPrefix(text, specKey+".")
	first, _, _ := strings.Cut(trimmed, ".")
	first, _, _ = strings.Cut(first, "[")
	first, _, _ = strings.Cut(first, "=")
	switch {
	case podSpecInfo().fields[first] != nil:
		return podTemplateKey + "." + specKey + "." + trimmed
	case trimmed != text && slices.Contains([]string{podTemplateKey, volumeClaimTemplatesKey, serviceKey}, first):
		return trimmed
	default:
		return ""
	}
}
