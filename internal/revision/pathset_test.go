package revision

import "testing"

// Values in paths are compared with what is there, not with what is missing.
func TestValuesInPaths(t *testing.T) {
	cases := map[string]struct {
		path, want, got string
		allowed         bool
	}{
		"a key that is missing":           {"podTemplate.spec.tolerations[key=null]", "{}", "{tolerations: [{operator: Exists}]}", false},
		"a key, by its beginning":         {"podTemplate.spec.tolerations[key=a*]", "{}", "{tolerations: [{key: ab}]}", true},
		"a missing key, by its beginning": {"podTemplate.spec.tolerations[key=*]", "{}", "{tolerations: [{operator: Exists}]}", false},
		"a key that is an object":         {"podTemplate.spec.volumes[emptyDir=*]", "{}", "{volumes: [{name: a, emptyDir: {medium: Memory}}]}", false},
		"elements that are no objects":    {"podTemplate.spec.containers[0].args[name=a]", "{containers: [{name: c}]}", "{containers: [{name: c, args: [a]}]}", false},
		"a number":                        {"podTemplate.spec.priority=1", "{}", "{priority: 1}", true},
		"a quoted number is a string":     {`podTemplate.spec.priority="1"`, "{}", "{priority: 1}", false},
		"a quoted string":                 {`podTemplate.spec.hostname="a*"`, "{}", "{hostname: 'a*'}", true},
		"a quoted string is no beginning": {`podTemplate.spec.hostname="a*"`, "{}", "{hostname: ab}", false},
		"another value":                   {"podTemplate.spec.hostname=a", "{}", "{hostname: ab}", false},
		"another field of that value":     {"podTemplate.spec.hostname=a", "{}", "{subdomain: a}", false},
		"the beginning of a number":       {"podTemplate.spec.priority=1*", "{}", "{priority: 12}", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := ParsePaths(tc.path)
			if err != nil {
				t.Fatal(err)
			}
			if got := Equal(mustPod(t, tc.want), mustPod(t, tc.got), set); got != tc.allowed {
				t.Errorf("allowed is %t, want %t", got, tc.allowed)
			}
		})
	}
}

// What overrides stands in the place of other values, and adds what it says, but removes nothing.
func TestOverriding(t *testing.T) {
	cases := map[string]struct {
		path, want, got string
		allowed         bool
	}{
		"its value":              {"podTemplate.spec.hostname=a", "{hostname: b}", "{hostname: a}", true},
		"another value":          {"podTemplate.spec.hostname=a", "{hostname: b}", "{hostname: c}", false},
		"another field":          {"podTemplate.spec.subdomain=a", "{hostname: b}", "{hostname: a}", false},
		"what is more":           {"podTemplate.spec.hostname=a", "{}", "{hostname: a}", true},
		"what is missing":        {"podTemplate.spec.hostname=a", "{hostname: b}", "{}", false},
		"a path without a value": {"podTemplate.spec.hostname", "{hostname: b}", "{hostname: a}", false},
		"a path above it":        {"podTemplate.spec.securityContext=2", "{securityContext: {fsGroup: 1}}", "{securityContext: {fsGroup: 2}}", false},
		"a path below it":        {"podTemplate.spec.hostname.a=a", "{hostname: b}", "{hostname: a}", false},
		"in each element":        {"podTemplate.spec.containers[*].image=a", "{containers: [{name: c, image: b}]}", "{containers: [{name: c, image: a}]}", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := mustPaths(t, tc.path)
			want, got := mustPod(t, tc.want), mustPod(t, tc.got)
			if is := Equal(want, got, PathSet{}.Union(set.Overriding())); is != tc.allowed {
				t.Errorf("allowed is %t, want %t", is, tc.allowed)
			}
			if is := Equal(want.Redact(), got, set.Overriding()); is != tc.allowed {
				t.Errorf("where digests are kept, allowed is %t, want %t", is, tc.allowed)
			}
			if tc.want != "{}" && Equal(want, got, set) {
				t.Error("the same paths allow another value without overriding")
			}
		})
	}
}

func TestEmptyBlueprints(t *testing.T) {
	empty, some := mustPod(t, "{}"), mustPod(t, "{hostname: a}")
	parsed, err := Parse([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]Blueprint{"of an empty pod": empty, "parsed": parsed, "of nothing": {}, "the Pod's of nothing": some.PodOnly().PodOnly()} {
		wantZero := name != "the Pod's of nothing"
		if b.IsZero() != wantZero || b.Equal(Blueprint{}) != wantZero || (Blueprint{}).Equal(b) != wantZero || (b.Hash() == emptyHash) != wantZero {
			t.Errorf("%s: zero is %t, want %t", name, b.IsZero(), wantZero)
		}
	}
	if empty.Redact().Equal(Blueprint{}) || (Blueprint{}).Equal(empty.Redact()) {
		t.Error("a redacted blueprint equals one that is not")
	}
}

func TestParseRefusesWhatIsNotWhole(t *testing.T) {
	const good = "v1-0123456789abcdef"
	for name, data := range map[string]string{
		"more behind it":   `{} {}`,
		"no hash":          `{"redacted":{"hash":"","podHash":"` + good + `"}}`,
		"no hash of a Pod": `{"redacted":{"hash":"` + good + `","podHash":"v2-0123456789abcdef"}}`,
	} {
		if _, err := Parse([]byte(data)); err == nil {
			t.Errorf("%s is parsed", name)
		}
	}
	for name, spec := range map[string]map[string]any{
		"an unknown key":            {"\xff": int64(1)},
		"a key inside the unknown":  {"new": map[string]any{"\xff": int64(1)}},
		"a text inside the unknown": {"new": map[string]any{"a": "\xff"}},
		"an element of the unknown": {"new": []any{"\xff"}},
	} {
		if _, err := FromSpec(map[string]any{"podTemplate": map[string]any{"spec": spec}}); err == nil {
			t.Errorf("%s that is no UTF-8 is taken", name)
		}
	}
}
