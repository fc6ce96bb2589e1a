package main

import "slices"

// forming is which forms of a content are one, and what lists of paths allow.
var forming = slices.Concat(at("internal/revision/pathset.go", []mutant{
	{check: "paths: with a value allow no subtree", old: `p.value == nil && len(p.segments) >= minLength`, broken: `len(p.segments) >= minLength`, test: "TestAllowedPaths"},
	{check: "paths: the value counts", old: `p.matches(steps) && p.value.matches(leaf) {`, broken: `p.matches(steps) {`, test: "TestValuesInPaths"},
	{check: "paths: every segment counts", old: `if !p.segments[i].matches(&steps[i]) {`, broken: `if i == 0 && !p.segments[i].matches(&steps[i]) {`, test: "TestAllowedPaths"},
	{check: "paths: an element is no field", old: `if !at.element {`, broken: `if false {`, test: "TestAllowedPaths"},
	{check: "paths: elements by place", old: `return s.index == at.index`, broken: `return true`, test: "TestAllowedPaths"},
	{check: "paths: a selector compares leaves that are there", old: `return v != nil && isLeaf(v) && s.value.matches(v)`, broken: `return isLeaf(v) && s.value.matches(v)`, test: "TestValuesInPaths"},
	{check: "paths: a selector compares no objects", old: `return v != nil && isLeaf(v) && s.value.matches(v)`, broken: `return v != nil && s.value.matches(v)`, test: "TestValuesInPaths"},
	{check: "paths: what is quoted is a string", old: `return isString && text == v.text`, broken: `return text == v.text`, test: "TestValuesInPaths"},
	{check: "paths: either set allows", old: `slices.Concat(s.patterns, other.patterns)`, broken: `slices.Concat(s.patterns)`, test: "TestUnion"},
}), at("internal/revision/canonical.go", []mutant{
	{check: "canonical: unknown fields count", old: `out.fields = append(out.fields, unknown)`, broken: `_ = unknown`, test: "TestCanonicalForm"},
	{check: "canonical: absent is what the encoder leaves out", old: `if info.pointer || !isZero(info, cv) {`, broken: `if !isZero(info, cv) {`, test: "TestCanonicalForm"},
	{check: "canonical: empty values are absent where Go writes them so", old: `if info.pointer || !isZero(info, cv) {`, broken: `if true {`, test: "TestCanonicalForm"},
	{check: "canonical: names of items stay readable", old: `inner.redacted = false`, broken: ``, test: "TestCompareRedacted"},
	{check: "canonical: a quantity of zero is absent", old: `return v == zeroQuantity`, broken: `return false`, test: "TestCanonicalForm"},
}))
