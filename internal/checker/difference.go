package checker

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// shownDifferences is how many differing leaves one line names before it counts the rest.
const shownDifferences = 3

// shownLeaf matches the leaves whose values can be no secret. Those of all others stay out of reports.
var shownLeaf = regexp.MustCompile(`^((initContainers|containers)\[\d+\]\.(image|imagePullPolicy|resources\..+)|` +
	`volumeClaimTemplates\[\d+\]\.spec\.(resources\..+|storageClassName)|` +
	`runtimeClassName|restartPolicy|dnsPolicy|serviceAccountName|automountServiceAccountToken|host(Network|PID|IPC|Users)|service)$`)

// leaves flattens a blueprint to its leaves by path, in the API types' own JSON form. Paths inside of the pod spec stand
// without prefix.
func (b blueprint) leaves() (map[string]any, error) {
	out := map[string]any{}
	if err := flattenTyped(b.pod, "", out); err != nil {
		return nil, err
	}
	for path, value := range b.podExtra {
		flatten(value, path, out)
	}
	for i, v := range b.volumes {
		path := fmt.Sprintf("volumeClaimTemplates[%d]", i)
		if err := flattenTyped(v.typedVolume, path, out); err != nil {
			return nil, err
		}
		for sub, value := range v.extra {
			flatten(value, join(path, sub), out)
		}
	}
	if b.service != nil {
		out["service"] = *b.service
	}
	return out, nil
}

func flattenTyped(v any, path string, out map[string]any) error {
	tree, err := treeOf(v)
	if err != nil {
		return err
	}
	flatten(tree, path, out)
	return nil
}

// treeOf is a typed value in its JSON form. Whole numbers stay whole: as float64, large ones would be equal that are not.
func treeOf(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	var tree map[string]any
	if err := utiljson.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("decode %T: %w", v, err)
	}
	return tree, nil
}

// flatten collects leaves. Null and the empty list say nothing; an empty object may (an empty selector selects all).
func flatten(value any, path string, out map[string]any) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		if len(v) == 0 && path != "" {
			out[path] = v
		}
		for key, item := range v {
			flatten(item, join(path, key), out)
		}
	case []any:
		for i, item := range v {
			flatten(item, fmt.Sprintf("%s[%d]", path, i), out)
		}
	default:
		out[path] = value
	}
}

// difference says in one line how two contents differ, from what was found to what was expected.
func difference(found, expected blueprint) string {
	a, errA := found.leaves()
	b, errB := expected.leaves()
	if errA != nil || errB != nil {
		return ""
	}
	all := map[string]any{}
	for _, m := range []map[string]any{a, b} {
		for path := range m {
			if !reflect.DeepEqual(a[path], b[path]) {
				all[path] = nil
			}
		}
	}
	var parts []string
	for _, path := range sortedKeys(all) {
		parts = append(parts, leafDifference(path, a[path], b[path]))
	}
	return shorten(parts)
}

func leafDifference(path string, found, expected any) string {
	switch {
	case shownLeaf.MatchString(path):
		return fmt.Sprintf("%s %s -> %s", path, leaf(found), leaf(expected))
	case found == nil:
		return path + " is missing"
	case expected == nil:
		return path + " is there and not expected"
	}
	return path + " differs (value not shown)"
}

func leaf(v any) string {
	switch v := v.(type) {
	case nil:
		return "<absent>"
	case string:
		if v != "" && !strings.ContainsAny(v, " \t\n") {
			return v
		}
		return fmt.Sprintf("%q", v)
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(raw)
	}
}

func shorten(parts []string) string {
	if extra := len(parts) - shownDifferences; extra > 0 {
		parts = append(parts[:shownDifferences:shownDifferences], fmt.Sprintf("and %d more", extra))
	}
	return strings.Join(parts, ", ")
}
