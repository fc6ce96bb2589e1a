package revision

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDifferencesShowWhatCanHoldNoSecret(t *testing.T) {
	cases := map[string]struct {
		want, got string // specs of a Pod
		text      string
	}{
		"an image":                           {"{containers: [{name: c, image: 'a:v1'}]}", "{containers: [{name: c, image: 'a:v2'}]}", `containers[name=c].image: "a:v1" -> "a:v2"`},
		"an init container's image":          {"{initContainers: [{name: c}]}", "{initContainers: [{name: c, image: 'a:v2'}]}", `initContainers[name=c].image: (absent) -> "a:v2"`},
		"a quantity":                         {"{containers: [{name: c, resources: {limits: {a.b/c: 1}}}]}", "{containers: [{name: c, resources: {limits: {a.b/c: 2}}}]}", `containers[name=c].resources.limits["a.b/c"]: "1" -> "2"`},
		"an unknown field below resources":   {"{containers: [{name: c, resources: {x: s3cret}}]}", "{containers: [{name: c, resources: {x: other}}]}", `containers[name=c].resources.x: changed`},
		"a boolean":                          {"{enableServiceLinks: true}", "{enableServiceLinks: false}", `enableServiceLinks: true -> false`},
		"a word of the API":                  {"{}", "{restartPolicy: Never}", `restartPolicy: (absent) -> "Never"`},
		"another word there":                 {"{restartPolicy: Never}", "{restartPolicy: s3cret}", `restartPolicy: changed`},
		"a number of seconds":                {"{terminationGracePeriodSeconds: 5}", "{terminationGracePeriodSeconds: 6}", `terminationGracePeriodSeconds: 5 -> 6`},
		"a number in an unknown field":       {"{pin: 1234}", "{pin: 4321}", `pin: changed`},
		"args":                               {"{containers: [{name: c, args: [s3cret]}]}", "{containers: [{name: c, args: [other]}]}", `containers[name=c].args[0]: changed`},
		"a command less":                     {"{containers: [{name: c, command: [s3cret]}]}", "{containers: [{name: c}]}", `containers[name=c].command[0]: removed`},
		"a value of the environment":         {"{containers: [{name: c, env: [{name: A}]}]}", "{containers: [{name: c, env: [{name: A, value: s3cret}]}]}", `containers[name=c].env[name=A].value: added`},
		"a header":                           {headerYAML("s3cret"), headerYAML("other"), `containers[name=c].livenessProbe.httpGet.httpHeaders[0].value: changed`},
		"a CSI attribute":                    {"{volumes: [{name: v, csi: {volumeAttributes: {k: s3cret}}}]}", "{volumes: [{name: v, csi: {volumeAttributes: {k: other}}}]}", `volumes[name=v].csi.volumeAttributes.k: changed`},
		"an attribute called image":          {"{volumes: [{name: v, csi: {volumeAttributes: {image: s3cret}}}]}", "{volumes: [{name: v, csi: {volumeAttributes: {image: other}}}]}", `volumes[name=v].csi.volumeAttributes.image: changed`},
		"a name that looks like an image":    {"{volumes: [{name: 'containers[name=c].image', csi: {driver: s3cret}}]}", "{volumes: [{name: 'containers[name=c].image', csi: {driver: other}}]}", `volumes[name="containers[name=c].image"].csi.driver: changed`},
		"a container named as if it ended":   {`{containers: [{name: 'c"].image', args: [s3cret]}]}`, `{containers: [{name: 'c"].image', args: [other]}]}`, `containers[name="c\"].image"].args[0]: changed`},
		"another order":                      {"{containers: [{name: a}, {name: b}]}", "{containers: [{name: b}, {name: a}]}", `containers: in another order`},
		"a secret in place of what is shown": {"{enableServiceLinks: true}", "{}", `enableServiceLinks: true -> (absent)`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			diffs := Compare(mustPod(t, tc.want), mustPod(t, tc.got), PathSet{})
			if diff := cmp.Diff(tc.text, Summary(diffs, 0)); diff != "" {
				t.Errorf("Summary() (-want,+got):\n%s", diff)
			}
		})
	}
}

// A canary takes the place of each string that a blueprint can hold, and nothing that is said of it shows one: not that they changed, were
// added or removed, not that one cannot be read. Names, which paths are made of, stay; images may be shown.
func TestNoValueIsShown(t *testing.T) {
	const canary = "canary-7f3a"
	spec := full(blueprintInfo()).(map[string]any)
	before, err := FromSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	leaves, typed := 0, 0
	replaceStrings(spec, nil, func(path []string, old string) string {
		leaves++
		switch typeAt(path).kind {
		case kindQuantity, kindTime:
			typed++
			return old
		}
		if isName(path) || isImage(path) {
			return old
		}
		return canary
	})
	after, err := FromSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	if leaves < 400 || typed < 10 || strings.Count(string(after.JSON()), canary) < 300 {
		t.Fatalf("%d strings, %d of them typed, tell little", leaves, typed)
	}
	for _, pair := range [][2]Blueprint{{before, after}, {after, before}, {{}, after}, {after, {}}, {before.Redact(), after}, {before, after.Redact()}} {
		diffs := Compare(pair[0], pair[1], PathSet{})
		texts := []string{Summary(diffs, 0), fmt.Sprint(pair), fmt.Sprintf("%+v", pair)}
		for _, d := range diffs {
			texts = append(texts, d.String())
		}
		for _, text := range texts {
			if at := strings.Index(text, canary); at >= 0 {
				t.Errorf("a value is shown: %.200s", text[max(0, at-100):])
			}
		}
	}
	for _, tc := range []string{"{overhead: {cpu: canary-7f3a}}", "{volumes: [{name: v, emptyDir: {sizeLimit: canary-7f3a}}]}", "{priority: canary-7f3a}", "{hostNetwork: canary-7f3a}", "{containers: canary-7f3a}", "{containers: [{ports: [{containerPort: canary-7f3a}]}]}"} {
		if _, err := FromPodSpec(fromYAML(t, tc)); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: the error is %v", tc, err)
		}
	}
}

// full is unstructured JSON with every field of the type, one element in each list and one key in each map.
func full(t *typeInfo) any {
	switch t.kind {
	case kindStruct:
		out := map[string]any{"unknown": map[string]any{"list": []any{"s"}, "field": "s"}}
		for name, f := range t.fields {
			out[name] = full(f)
		}
		return out
	case kindMap:
		return map[string]any{"k": full(t.elem)}
	case kindList:
		return []any{full(t.elem)}
	case kindString, kindIntOrString, kindRaw:
		return "s"
	case kindBool:
		return true
	case kindQuantity:
		return "1"
	case kindTime:
		return "2026-01-01T00:00:00Z"
	default:
		return int64(1)
	}
}

func isImage(path []string) bool {
	return path[len(path)-1] == "image" && len(path) > 3 && slices.Contains([]string{"containers", "initContainers", "ephemeralContainers"}, path[len(path)-3])
}

// isName says whether the path ends in the field that tells the elements of a list apart.
func isName(path []string) bool {
	return len(path) > 2 && typeAt(path[:len(path)-2]).mergeKey == path[len(path)-1]
}

// typeAt returns the type at the path; that of what is not known below one that is not.
func typeAt(path []string) *typeInfo {
	info := blueprintInfo()
	for _, name := range path {
		switch info.kind {
		case kindStruct:
			info = info.fields[name]
		case kindMap, kindList:
			info = info.elem
		default:
			info = nil
		}
		if info == nil {
			return &typeInfo{}
		}
	}
	return info
}

// replaceStrings puts something in place of each string of a JSON value.
func replaceStrings(v any, path []string, replace func(path []string, old string) string) {
	at := func(name string, inner any, set func(any)) {
		path := append(slices.Clone(path), name)
		if s, ok := inner.(string); ok {
			set(replace(path, s))
			return
		}
		replaceStrings(inner, path, replace)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at(name, v[name], func(to any) { v[name] = to })
		}
	case []any:
		for i := range v {
			at(fmt.Sprint(i), v[i], func(to any) { v[i] = to })
		}
	}
}
