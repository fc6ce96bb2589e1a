package revision

import (
	"slices"
	"strconv"
	"strings"
)

// PathSet says where a blueprint may have leaves that the one it is compared with has not, and where another value. The zero value
// allows none.
type PathSet struct {
	patterns []pattern
}

type pattern struct {
	segments []segment
	value    *valuePattern // nil: any value, and anything below
	// overrides: the value may stand where another one is asked for.
	overrides bool
}

type segmentKind uint8

const (
	segmentField segmentKind = iota
	segmentAny
	segmentIndex
	segmentSelector
)

type segment struct {
	kind  segmentKind
	name  string // the field, or the field of a selector
	index int
	value valuePattern
}

type valuePattern struct {
	text   string
	glob   bool
	quoted bool
}

// Union allows what either set allows.
func (s PathSet) Union(other PathSet) PathSet {
	return PathSet{patterns: slices.Concat(s.patterns, other.patterns)}
}

// Overriding is the set of the same paths, whose values may also stand in the place of others.
func (s PathSet) Overriding() PathSet {
	out := PathSet{patterns: slices.Clone(s.patterns)}
	for i := range out.patterns {
		out.patterns[i].overrides = true
	}
	return out
}

// Len is the number of paths.
func (s PathSet) Len() int { return len(s.patterns) }

// Strings returns the paths in the grammar that ParsePaths reads.
func (s PathSet) Strings() []string {
	out := make([]string, 0, len(s.patterns))
	for _, p := range s.patterns {
		out = append(out, p.String())
	}
	return out
}

// String returns the paths separated by commas, as SplitPaths reads them.
func (s PathSet) String() string { return strings.Join(s.Strings(), ",") }

func (p pattern) String() string {
	var text string
	for _, s := range p.segments {
		text = joinPath(text, s.String())
	}
	if p.value != nil {
		text += "=" + p.value.String()
	}
	return text
}

func (s segment) String() string {
	switch s.kind {
	case segmentAny:
		return "[*]"
	case segmentIndex:
		return "[" + strconv.Itoa(s.index) + "]"
	case segmentSelector:
		return "[" + s.name + "=" + s.value.String() + "]"
	default:
		return fieldSegment(s.name)
	}
}

func (v valuePattern) String() string {
	switch {
	case v.quoted:
		return string(appendString(nil, v.text))
	case v.glob:
		return v.text + "*"
	default:
		return v.text
	}
}

// covers says whether everything at steps and below is allowed by a path of at least minLength segments.
func (s PathSet) covers(steps []step, minLength int) bool {
	for i := range s.patterns {
		p := &s.patterns[i]
		if p.value == nil && len(p.segments) >= minLength && len(p.segments) <= len(steps) && p.matches(steps) {
			return true
		}
	}
	return false
}

// allowsLeaf says whether the leaf at steps is allowed because of its value.
func (s PathSet) allowsLeaf(steps []step, leaf any) bool {
	for i := range s.patterns {
		p := &s.patterns[i]
		if p.value != nil && len(p.segments) == len(steps) && p.matches(steps) && p.value.matches(leaf) {
			return true
		}
	}
	return false
}

// overrides says whether the leaf at steps may have this value in the place of any other.
func (s PathSet) overrides(steps []step, leaf any) bool {
	return slices.ContainsFunc(s.patterns, func(p pattern) bool {
		return p.overrides && p.value != nil && len(p.segments) == len(steps) && p.matches(steps) && p.value.matches(leaf)
	})
}

// matches looks at the first steps, one for each segment.
func (p *pattern) matches(steps []step) bool {
	for i := range p.segments {
		if !p.segments[i].matches(&steps[i]) {
			return false
		}
	}
	return true
}

func (s *segment) matches(at *step) bool {
	if s.kind == segmentField {
		return !at.element && s.name == at.name
	}
	if !at.element {
		return false
	}
	switch s.kind {
	case segmentIndex:
		return s.index == at.index
	case segmentSelector:
		o, ok := at.value.(*object)
		if !ok {
			return false
		}
		v := o.get(s.name)
		return v != nil && isLeaf(v) && s.value.matches(v)
	default:
		return true
	}
}

func (v *valuePattern) matches(leaf any) bool {
	text, isString := leaf.(string)
	if !isString {
		text = leafText(leaf)
	}
	switch {
	case v.quoted:
		return isString && text == v.text
	case v.glob:
		return strings.HasPrefix(text, v.text)
	default:
		return text == v.text
	}
}
