package checker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A list of paths lets a Pod have more than its template, never something else.
func TestAListOfPathsExcusesNoLeafThatDiffers(t *testing.T) {
	container := func(more map[string]any) map[string]any {
		more["name"] = "c"
		return map[string]any{"containers": []any{more}}
	}
	in := parseInjected("podTemplate.spec.containers[*].image")
	for name, tc := range map[string]struct{ have, want, left map[string]any }{
		"it has one more":    {container(map[string]any{"image": "a"}), container(map[string]any{}), container(map[string]any{})},
		"it has another one": {container(map[string]any{"image": "a"}), container(map[string]any{"image": "b"}), container(map[string]any{"image": "a"})},
		"it has the same":    {container(map[string]any{"image": "a"}), container(map[string]any{"image": "a"}), container(map[string]any{"image": "a"})},
		"it has none":        {container(map[string]any{}), container(map[string]any{"image": "a"}), container(map[string]any{})},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.left, in.without(tc.have, tc.want)); diff != "" {
				t.Errorf("without() (-want,+got):\n%s", diff)
			}
		})
	}
}

// An admission plugin mounts a volume of the template once more, before its own mounts.
func TestAnInjectedMountOfTheTemplatesOwnVolume(t *testing.T) {
	mounts := func(paths ...string) map[string]any {
		var list []any
		for _, path := range paths {
			list = append(list, map[string]any{"name": "data", "mountPath": path})
		}
		return map[string]any{"containers": []any{map[string]any{"name": "c", "volumeMounts": list}}}
	}
	in := parseInjected("podTemplate.spec.containers[*].volumeMounts[mountPath=/injected]")
	want := mounts("/a", "/b")
	if diff := cmp.Diff(want, in.without(mounts("/injected", "/a", "/b"), want)); diff != "" {
		t.Errorf("without() (-want,+got):\n%s", diff)
	}
	if other := mounts("/other", "/a", "/b"); cmp.Diff(other, in.without(other, want)) != "" {
		t.Error("a mount that no path allows is left out")
	}
}
