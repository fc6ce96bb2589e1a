package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// apart are folders whose modules have versions of their own, with all below them, and why.
var apart = map[string]string{
	"test/upstream":     "agent-sandbox's releases stay what was released",
	"test/gotestsum":    "a tool that has little in common with Freshbind",
	"test/lint":         "a tool that has little in common with Freshbind",
	"test/page/browser": "a tool that has little in common with Freshbind",
	"test/prose":        "a tool that has little in common with Freshbind",
}

// mayDiffer are modules that cannot have one version everywhere, and why.
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

// disagreements says of each module that has several versions which it has where.
func disagreements(versions map[string]map[string]string) map[string]string {
	byModule := map[string]map[string][]string{}
	for _, dir := range slices.Sorted(maps.Keys(versions)) {
		for module, version := range versions[dir] {
			if byModule[module] == nil {
				byModule[module] = map[string][]string{}
			}
			byModule[module][version] = append(byModule[module][version], dir)
		}
	}
	found := map[string]string{}
	for module, dirs := range byModule {
		if len(dirs) < 2 {
			continue
		}
		var where []string
		for _, version := range slices.Sorted(maps.Keys(dirs)) {
			where = append(where, fmt.Sprintf("%s in %s", version, strings.Join(dirs[version], ", ")))
		}
		found[module] = strings.Join(where, "; ")
	}
	return found
}

// sharedModules are the folders of all modules here that are not apart.
func sharedModules(t *testing.T) (dirs []string) {
	t.Helper()
	const root = "../.."
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		_, isApart := apart[filepath.ToSlash(dir)]
		if hidden := strings.HasPrefix(entry.Name(), ".") && path != root; entry.IsDir() && (isApart || hidden || dir == "bin") {
			return filepath.SkipDir
		}
		if entry.Name() == "go.mod" {
			dirs = append(dirs, filepath.ToSlash(filepath.Dir(dir)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// A package is compiled once for all modules only if all that it imports has the same
// version in each: with other versions, make demo alone compiles some 600 packages more.
func TestModulesShareVersions(t *testing.T) {
	versions := map[string]map[string]string{}
	for _, dir := range sharedModules(t) {
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
	}
	if _, found := versions["test/controlplane/tools"]; !found || len(versions) < 5 {
		t.Fatalf("not all modules are found: %q", slices.Sorted(maps.Keys(versions)))
	}
	found := disagreements(versions)
	for module, why := range mayDiffer {
		if found[module] == "" {
			t.Errorf("%s has one version everywhere: take it out of mayDiffer (%s)", module, why)
		}
		delete(found, module)
	}
	for _, module := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("packages of %s are compiled once for each version: %s (go get MODULE@VERSION in the folder with the older one)", module, found[module])
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
		want     map[string]string
	}{
		"one module": {map[string]map[string]string{"a": {"x": "v1"}}, map[string]string{}},
		"the same":   {map[string]map[string]string{"a": {"x": "v1"}, "b": {"x": "v1", "y": "v2"}}, map[string]string{}},
		"another": {
			map[string]map[string]string{"b": {"x": "v1", "y": "v1"}, "a": {"x": "v2", "y": "v2"}, "c": {"x": "v1"}},
			map[string]string{"x": "v1 in b, c; v2 in a", "y": "v1 in b; v2 in a"},
		},
		"replaced, and the same": {map[string]map[string]string{"a": mod.versions(), "b": {"k8s.io/api": "v0.37.2", "y": "v2.0.0"}}, map[string]string{}},
		"replaced by another": {
			map[string]map[string]string{"a": mod.versions(), "b": {"k8s.io/api": "v0.37.1"}},
			map[string]string{"k8s.io/api": "v0.37.1 in b; v0.37.2 in a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, disagreements(tc.versions)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
