package revision

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
)

var injectionPaths = []string{
	"podTemplate.spec.nodeName",
	"podTemplate.spec.terminationGracePeriodSeconds=30",
	"podTemplate.spec.containers[*].env[name=INJECTED]",
	"podTemplate.spec.initContainers[name=injected]",
	"podTemplate.spec.volumes[name=injected-*]",
	"podTemplate.spec.tolerations",
	`podTemplate.spec.nodeSelector["injected.io/x"]`,
	"podTemplate.spec.dnsConfig",
	"podTemplate.spec.unknownToUs[*].a",
}

// inject adds to a pod spec what injectionPaths allow, but for what base has already.
func inject(into, base map[string]any, c *choices) {
	if base["nodeName"] == nil && c.below(2) == 1 {
		into["nodeName"] = "injected"
	}
	if base["terminationGracePeriodSeconds"] == nil && c.below(2) == 1 {
		into["terminationGracePeriodSeconds"] = int64(30)
	}
	containers, _ := into["containers"].([]any)
	for _, container := range containers {
		if m, ok := container.(map[string]any); ok && c.below(2) == 1 {
			insert(m, "env", "name", map[string]any{"name": "INJECTED", "value": "x"}, c)
		}
	}
	if c.below(2) == 1 {
		insert(into, "initContainers", "name", map[string]any{"name": "injected", "image": "x", "env": []any{map[string]any{"name": "a"}}}, c)
	}
	if c.below(2) == 1 {
		insert(into, "volumes", "name", map[string]any{"name": "injected-7", "projected": map[string]any{"sources": []any{map[string]any{}}}}, c)
	}
	if c.below(2) == 1 {
		insert(into, "tolerations", "", map[string]any{"key": "injected"}, c)
	}
	if c.below(2) == 1 {
		child(into, "nodeSelector")["injected.io/x"] = "injected"
	}
	baseDNS, _ := base["dnsConfig"].(map[string]any)
	if baseDNS["searches"] == nil && c.below(2) == 1 {
		child(into, "dnsConfig")["searches"] = []any{"injected"}
	}
	if c.below(2) == 1 {
		insert(into, "unknownToUs", "", map[string]any{"a": map[string]any{"b": []any{nil}}}, c)
	}
}

func child(m map[string]any, name string) map[string]any {
	inner, ok := m[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[name] = inner
	}
	return inner
}

// insert puts elem anywhere into a list whose elements are told apart by key, and at the end of another.
func insert(m map[string]any, name, key string, elem any, c *choices) {
	items, _ := m[name].([]any)
	at := len(items)
	seen := map[any]bool{}
	for _, item := range items {
		o, _ := item.(map[string]any)
		seen[o[key]] = true
	}
	if len(seen) == len(items) && !seen[nil] {
		at = c.below(len(items) + 1)
	}
	m[name] = slices.Insert(slices.Clone(items), at, elem)
}

// spot is a place in an unstructured document where a leaf is, or where one can be added.
type spot struct {
	path  []string
	value any
	set   func(v any)
	clear func()
}

// spots lists the leaves of v, and its objects.
func spots(v any, path []string, set func(any), clear func()) (leaves, objects []spot) {
	here := spot{slices.Clone(path), v, set, clear}
	switch v := v.(type) {
	case map[string]any:
		objects = append(objects, here)
		if len(v) == 0 {
			leaves = append(leaves, here)
		}
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			l, o := spots(v[name], append(path, name), func(n any) { v[name] = n }, func() { delete(v, name) })
			leaves, objects = append(leaves, l...), append(objects, o...)
		}
	case []any:
		if len(v) == 0 {
			leaves = append(leaves, here)
		}
		for i := range v {
			remove := func() { set(slices.Delete(slices.Clone(v), i, i+1)) }
			l, o := spots(v[i], append(path, "[]"), func(n any) { v[i] = n }, remove)
			leaves, objects = append(leaves, l...), append(objects, o...)
		}
	default:
		leaves = append(leaves, here)
	}
	return leaves, objects
}

func different(v any) any {
	switch v := v.(type) {
	case string:
		return v + "~"
	case int64:
		return v - 1
	case bool:
		return !v
	case map[string]any:
		return map[string]any{"different": true}
	case []any:
		return []any{"different"}
	default:
		return "different"
	}
}

// canGrow says whether injectionPaths allow additions inside of what is at the spot.
func canGrow(s spot) bool {
	return len(s.path) > 0 && (s.path[0] == "dnsConfig" || s.path[0] == "tolerations" || s.path[0] == "unknownToUs" && len(s.path) > 2)
}

// change makes one leaf of doc more, less or different, not where additions are allowed. It says what it did.
func change(doc map[string]any, c *choices) string {
	leaves, objects := spots(doc, nil, func(any) {}, func() {})
	objects = slices.DeleteFunc(objects, canGrow)
	// An empty object where additions are allowed is still there when it has something, whoever put that there.
	leaves = slices.DeleteFunc(leaves, func(s spot) bool { return isEmptyContainer(s.value) && canGrow(s) })
	if c.below(3) == 0 || len(leaves) == 0 {
		at := objects[c.below(len(objects))]
		at.value.(map[string]any)["added-leaf"] = pick[any](c, "x", map[string]any{}, false)
		return "more"
	}
	at := leaves[c.below(len(leaves))]
	if c.below(2) == 0 {
		at.clear()
		return "less"
	}
	at.set(different(at.value))
	return "different"
}

func isEmptyContainer(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	default:
		return false
	}
}

func FuzzInjection(f *testing.F) {
	addSeeds(f, 300)
	allowed, err := ParsePaths(injectionPaths...)
	if err != nil {
		f.Fatalf("ParsePaths: %v", err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, c := split(data)
		form := encode(t, spec)
		form["unknownToUs"] = []any{map[string]any{"a": map[string]any{"c": int64(1)}}, "text", nil, []any{1.5}}
		a, err := FromPodSpec(form)
		if err != nil {
			t.Fatalf("FromPodSpec: %v", err)
		}
		base := canonicalPodSpec(t, a)
		if len(base) == 0 {
			return
		}

		member := canonicalPodSpec(t, a)
		inject(member, base, c)
		got, err := FromPodSpec(member)
		if err != nil {
			t.Fatalf("FromPodSpec of a member: %v", err)
		}
		if diffs := Compare(a, got, allowed); len(diffs) > 0 || !Equal(a, got, allowed) || !Equal(a.Redact(), got, allowed) {
			t.Errorf("a member with injections differs: %v\n%s\n%s", diffs, a.JSON(), got.JSON())
		}

		changed := canonicalPodSpec(t, a)
		what := change(changed, c)
		inject(changed, base, c)
		other, err := FromPodSpec(changed)
		if err != nil {
			return
		}
		if diffs := Compare(a, other, allowed); len(diffs) == 0 || Equal(a, other, allowed) || Equal(a.Redact(), other, allowed) {
			t.Errorf("a member with a leaf %s does not differ (Compare: %v)\n%s\n%s", what, diffs, a.JSON(), other.JSON())
		}
	})
}

func canonicalPodSpec(t *testing.T, b Blueprint) map[string]any {
	t.Helper()
	var doc struct {
		PodTemplate struct {
			Spec map[string]any `json:"spec"`
		} `json:"podTemplate"`
	}
	if err := json.Unmarshal(b.JSON(), &doc); err != nil {
		t.Fatalf("decode: %v", err)
	}
	return fixNumbers(doc.PodTemplate.Spec).(map[string]any)
}

// fixNumbers makes integers of integral floats: decoding into a map that is not the top level gives floats only.
func fixNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = fixNumbers(v[name])
		}
	case []any:
		for i := range v {
			v[i] = fixNumbers(v[i])
		}
	case float64:
		if n, ok := number(v); ok {
			return n
		}
	}
	return v
}
