package checker

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// injected are the paths at which a pool's owner vouches for leaves that the template does not have
// (freshbind.dev/injected-paths): fields, [n], [*] and [field=value] steps, and =value, or =prefix*, at the end. Only what
// is in the pod spec is known here; a list that cannot be read allows nothing.
type injected struct{ paths []injectedPath }

type injectedPath struct {
	steps []string
	value *string
}

const podRoot = "podTemplate.spec."

// injectedInto are the paths of a pool just before rv.
func (h *History) injectedInto(namespace, pool string, rv RV) injected {
	e, ok := h.pools[name{namespace, pool}].before(rv)
	if !ok {
		return injected{}
	}
	return parseInjected(e.state.injected)
}

func parseInjected(list string) injected {
	var out injected
	for _, text := range splitOutside(list, ", \t\r\n") {
		rest, ok := strings.CutPrefix(text, podRoot)
		if !ok {
			continue
		}
		var p injectedPath
		if parts := splitOutside(rest, "="); len(parts) == 2 {
			value := parts[1]
			if unquoted, err := strconv.Unquote(value); err == nil {
				value = unquoted
			}
			rest, p.value = parts[0], &value
		}
		for _, field := range splitOutside(rest, ".") {
			step, brackets, _ := strings.Cut(field, "[")
			p.steps = append(p.steps, step)
			for brackets != "" {
				var inner string
				inner, brackets, _ = strings.Cut(brackets, "]")
				p.steps = append(p.steps, "["+inner+"]")
				brackets = strings.TrimPrefix(brackets, "[")
			}
		}
		out.paths = append(out.paths, p)
	}
	return out
}

// splitOutside cuts at any of the separators that is not in quotes or brackets, and drops what is empty.
func splitOutside(text, separators string) []string {
	var out []string
	start, depth, quoted := 0, 0, false
	for i, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth == 0 && strings.ContainsRune(separators, r):
			out = append(out, text[start:i])
			start = i + 1
		}
	}
	out = append(out, text[start:])
	return slices.DeleteFunc(out, func(part string) bool { return part == "" })
}

// same reports whether found is expected, but for what was injected.
func (in injected) same(found, expected *content) bool {
	if found.equal(expected.blueprint) {
		return true
	}
	if len(in.paths) == 0 {
		return false
	}
	have, errHave := treeOf(found.pod)
	want, errWant := treeOf(expected.pod)
	if errHave != nil || errWant != nil {
		return false
	}
	reduced := found.blueprint
	reduced.pod = corev1.PodSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.without(have, want), &reduced.pod); err != nil {
		return false
	}
	reduced.podExtra = maps.Clone(found.podExtra)
	maps.DeleteFunc(reduced.podExtra, func(path string, value any) bool {
		_, wanted := expected.podExtra[path]
		return !wanted && in.allows(strings.Split(path, "."), nil, value)
	})
	return reduced.equal(expected.blueprint)
}

// without returns have without the leaves that want does not have and that the paths allow.
func (in injected) without(have, want map[string]any) map[string]any {
	if len(in.paths) == 0 {
		return have
	}
	out, _ := in.reduce(have, want, nil, nil).(map[string]any)
	return out
}

// reduce returns nil where nothing is left of what want does not have. steps lead to have, elements are the list elements
// among them, nil for a field.
func (in injected) reduce(have, want any, steps []string, elements []any) any {
	switch h := have.(type) {
	case map[string]any:
		if len(h) == 0 {
			break
		}
		w, _ := want.(map[string]any)
		out := map[string]any{}
		for key, item := range h {
			if left := in.reduce(item, w[key], append(slices.Clip(steps), key), append(slices.Clip(elements), nil)); left != nil {
				out[key] = left
			}
		}
		if len(out) == 0 && want == nil {
			return nil
		}
		return out
	case []any:
		return in.reduceList(h, want, steps, elements)
	}
	if want == nil && in.allows(steps, elements, have) {
		return nil
	}
	return have
}

func (in injected) reduceList(have []any, want any, steps []string, elements []any) any {
	w, _ := want.([]any)
	wanted := byIdentity(w)
	var out []any
	for i, item := range have {
		match := counterpart(item, i, w, wanted)
		at := fmt.Sprintf("[%d]", i)
		if left := in.reduce(item, match, append(slices.Clip(steps), at), append(slices.Clip(elements), item)); left != nil {
			out = append(out, left)
		}
	}
	if len(out) == 0 && want == nil {
		return nil
	}
	return out
}

// counterpart is the element of want that item stands for: by identity where it has one, else the equal one, else by position.
func counterpart(item any, i int, want []any, wanted elements) any {
	if identity(item) != "" {
		match, _ := wanted.next(item)
		return match
	}
	if len(want) <= maxUnordered {
		if at := slices.IndexFunc(want, func(w any) bool { return reflect.DeepEqual(w, item) }); at >= 0 {
			return want[at]
		}
	}
	if i < len(want) {
		return want[i]
	}
	return nil
}

// allows reports whether a path covers the leaf at steps.
func (in injected) allows(steps []string, elements []any, leaf any) bool {
	return slices.ContainsFunc(in.paths, func(p injectedPath) bool {
		if len(p.steps) > len(steps) || p.value != nil && len(p.steps) != len(steps) {
			return false
		}
		for i, s := range p.steps {
			var element any
			if i < len(elements) {
				element = elements[i]
			}
			if !stepMatches(s, steps[i], element) {
				return false
			}
		}
		return p.value == nil || valueMatches(*p.value, leaf)
	})
}

func stepMatches(pattern, step string, element any) bool {
	if element == nil || pattern == "[*]" {
		return pattern == step || pattern == "[*]" && element != nil
	}
	key, value, selects := strings.Cut(strings.Trim(pattern, "[]"), "=")
	if !selects {
		return pattern == step
	}
	if unquoted, err := strconv.Unquote(value); err == nil {
		value = unquoted
	}
	m, _ := element.(map[string]any)
	return m[key] != nil && valueMatches(value, m[key])
}

func valueMatches(pattern string, value any) bool {
	text := fmt.Sprint(value)
	if prefix, glob := strings.CutSuffix(pattern, "*"); glob {
		return strings.HasPrefix(text, prefix)
	}
	return text == pattern
}
