package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sharing are the modules whose programs and tests are built beside each other, by folder.
// Not among them: agent-sandbox's releases, which stay what was released.
var sharing = []string{
	".", "hack/licenses", "hack/release", "test/alerts", "test/cel", "test/chart/certmanager", "test/chart/tools",
	"test/controlplane/tools", "test/routers",
}

// mayDiffer are modules that cannot have one version in all of them, and why.
var mayDiffer = map[string]string{
	"github.com/google/cel-go": "cert-manager needs a newer one than Kubernetes' API server, whose CEL Freshbind has to have",
}

// goMod is what go mod edit -json prints, as far as it is needed.
type goMod struct {
	Require []struct{ Path, Version string }
	Replace []struct {
		Old struct{ Path string }
		New struct{ Path, Version string }
	}
}

// versions are the modules' versions, by path, as replaced.
func (m goMod) versions() map[string]string {
	found := map[string]string{}
	for _, r := range m.Require {
		found[r.Path] = r.Version
	}
	for _, r := range m.Replace {
		if _, required := found[r.Old.Path]; required {
			found[r.Old.Path] = r.New.Version
		}
	}
	return found
}

// disagreements says of each module that has several versions where it has which.
func disagreements(versions map[string]map[string]string) []string {
	byModule := map[string]map[string][]string{}
	for _, dir := range slices.Sorted(maps.Keys(versions)) {
		for module, version := range versions[dir] {
			if byModule[module] == nil {
				byModule[module] = map[string][]string{}
			}
			byModule[module][version] = append(byModule[module][version], dir)
		}
	}
	var found []string
	for _, module := range slices.Sorted(maps.Keys(byModule)) {
		if len(byModule[module]) < 2 {
			continue
		}
		var where []string
		for _, version := range slices.Sorted(maps.Keys(byModule[module])) {
			where = append(where, fmt.Sprintf("%s in %s", version, strings.Join(byModule[module][version], ", ")))
		}
		found = append(found, module+": "+strings.Join(where, "; "))
	}
	return found
}

// A package is compiled once for all modules only if all that it imports has the same
// version in each: with other versions, make demo alone compiles some 350 packages more.
func TestModulesShareVersions(t *testing.T) {
	versions := map[string]map[string]string{}
	for _, dir := range sharing {
		command := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
		command.Dir = filepath.Join("../..", dir)
		output, err := command.Output()
		if err != nil {
			t.Fatalf("read go.mod of %s: %v", dir, err)
		}
		var mod goMod
		if err := json.Unmarshal(output, &mod); err != nil {
			t.Fatalf("decode go.mod of %s: %v", dir, err)
		}
		versions[dir] = mod.versions()
		if len(versions[dir]) == 0 {
			t.Errorf("%s requires nothing: take it out of the list here", dir)
		}
		// What is here has no version.
		delete(versions[dir], "github.com/freshbind/freshbind")
		for module := range mayDiffer {
			delete(versions[dir], module)
		}
	}
	for _, d := range disagreements(versions) {
		t.Errorf("packages are compiled once for each version (go get MODULE@VERSION in the folder with the older one):\n%s", d)
	}
}

func TestDisagreements(t *testing.T) {
	var mod goMod
	const replaced = `{"Require":[{"Path":"k8s.io/api","Version":"v0.0.0"},{"Path":"x","Version":"v1.0.0"}],
"Replace":[{"Old":{"Path":"k8s.io/api"},"New":{"Path":"k8s.io/api","Version":"v0.37.2"}},{"Old":{"Path":"y"},"New":{"Path":"y","Version":"v1.0.0"}}]}`
	if err := json.Unmarshal([]byte(replaced), &mod); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		versions map[string]map[string]string
		want     []string
	}{
		"one module": {map[string]map[string]string{"a": {"x": "v1"}}, nil},
		"the same":   {map[string]map[string]string{"a": {"x": "v1"}, "b": {"x": "v1", "y": "v2"}}, nil},
		"another": {
			map[string]map[string]string{"b": {"x": "v1", "y": "v1"}, "a": {"x": "v2", "y": "v2"}, "c": {"x": "v1"}},
			[]string{"x: v1 in b, c; v2 in a", "y: v1 in b; v2 in a"},
		},
		"replaced, and the same": {map[string]map[string]string{"a": mod.versions(), "b": {"k8s.io/api": "v0.37.2", "y": "v2.0.0"}}, nil},
		"replaced by another": {
			map[string]map[string]string{"a": mod.versions(), "b": {"k8s.io/api": "v0.37.1"}},
			[]string{"k8s.io/api: v0.37.1 in b; v0.37.2 in a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, disagreements(tc.versions)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
