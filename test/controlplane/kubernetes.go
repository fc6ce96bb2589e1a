package controlplane

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// KubernetesVariable chooses another Kubernetes than the one that tools/go.mod
// pins: a version of the Go module k8s.io/kubernetes, like v1.30.14. etcd and kwok
// stay those that are pinned.
const KubernetesVariable = "FRESHBIND_KUBERNETES"

// layout counts up when what writeModule writes changes, so that nobody goes on
// with what an older checkout wrote.
const layout = "1"

// PinnedKubernetes is the version that runs unless KubernetesVariable says otherwise.
func PinnedKubernetes(ctx context.Context) (string, error) {
	dir, err := toolsDir()
	if err != nil {
		return "", err
	}
	return ModuleVersion(ctx, dir, kubernetesModule)
}

// otherKubernetes is the version that KubernetesVariable asks for; "" for the one
// that is pinned.
func otherKubernetes(ctx context.Context) (string, error) {
	version := os.Getenv(KubernetesVariable)
	if version == "" {
		return "", nil
	}
	if _, err := stagingVersion(version); err != nil {
		return "", fmt.Errorf("%s: %w", KubernetesVariable, err)
	}
	pinned, err := PinnedKubernetes(ctx)
	if version == pinned {
		return "", err
	}
	return version, err
}

// kubernetesDir returns the folder of a module that pins a version of Kubernetes,
// and writes it first if need be: the one in the checkout pins one only.
func kubernetesDir(ctx context.Context, log io.Writer, version string) (string, error) {
	parent, err := cacheDir("kubernetes", layout)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(parent, version)
	if exists(filepath.Join(dir, "go.mod")) {
		return dir, nil
	}
	lock, err := waitLock(ctx, dir+".lock", func() { say(log, "waiting for another program that pins Kubernetes %s", version) })
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.unlock() }()
	if exists(filepath.Join(dir, "go.mod")) {
		return dir, nil
	}
	say(log, "pinning Kubernetes %s and the modules that it needs, in %s", version, dir)
	partial, err := os.MkdirTemp(parent, version+".partial-")
	if err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(partial) }()
	if err := writeModule(ctx, log, partial, version); err != nil {
		return "", fmt.Errorf("pin Kubernetes %s: %w", version, err)
	}
	if err := os.Rename(partial, dir); err != nil {
		return "", fmt.Errorf("put into the cache: %w", err)
	}
	return dir, nil
}

// writeModule writes go.mod and go.sum for the Kubernetes tools of a version.
func writeModule(ctx context.Context, log io.Writer, dir, version string) error {
	staging, err := stagingVersion(version)
	if err != nil {
		return err
	}
	own, err := publishedGoMod(ctx, dir, version)
	if err != nil {
		return err
	}
	staged, err := stagingVersions(ctx, log, dir, staging, own.stagedRequired())
	if err != nil {
		return err
	}
	text := kubernetesGoMod(version, staging, own, staged)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
		return fmt.Errorf("write go.mod: %w", err)
	}
	// It writes go.sum for what the programs need, and completes go.mod.
	args := []string{"list", "-mod=mod", "-deps", "-f", "{{.ImportPath}}"}
	for _, t := range tools {
		if t.kubernetes {
			args = append(args, t.pkg)
		}
	}
	_, err = goCommand(ctx, dir, args...)
	return err
}

// publishedGoMod is the go.mod of a version of Kubernetes.
func publishedGoMod(ctx context.Context, dir, version string) (goMod, error) {
	output, err := goCommand(ctx, dir, "mod", "download", "-json", kubernetesModule+"@"+version)
	if err != nil {
		return goMod{}, err
	}
	var downloaded struct{ GoMod string }
	if err := json.Unmarshal([]byte(output), &downloaded); err != nil {
		return goMod{}, fmt.Errorf("read download: %w", err)
	}
	output, err = goCommand(ctx, dir, "mod", "edit", "-json", downloaded.GoMod)
	if err != nil {
		return goMod{}, err
	}
	return readGoMod([]byte(output))
}

// goMod is a go.mod as go mod edit -json prints it.
type goMod struct {
	Go      string
	GoDebug []struct{ Key, Value string }
	Require []moduleVersion
	Replace []struct{ Old, New moduleVersion }
}

type moduleVersion struct{ Path, Version string }

// readGoMod reads that of Kubernetes. It replaces the modules of the folder staging by
// paths, which count only in the main module; they are published as well.
func readGoMod(published []byte) (goMod, error) {
	var own goMod
	if err := json.Unmarshal(published, &own); err != nil {
		return own, fmt.Errorf("read go.mod of Kubernetes: %w", err)
	}
	if len(own.Replace) == 0 {
		return own, errors.New("go.mod of Kubernetes replaces no module")
	}
	for _, r := range own.Replace {
		if !strings.HasPrefix(r.New.Path, "./staging/") {
			return own, fmt.Errorf("go.mod of Kubernetes replaces %s by %s: only modules of its folder staging are expected", r.Old.Path, r.New.Path)
		}
	}
	return own, nil
}

// stagedRequired are the modules of the folder staging that Kubernetes needs.
func (m goMod) stagedRequired() []string {
	var paths []string
	for _, r := range m.Require {
		if m.replaces(r.Path) {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

func (m goMod) replaces(path string) bool {
	for _, r := range m.Replace {
		if r.Old.Path == path {
			return true
		}
	}
	return false
}

// kubernetesGoMod is a go.mod for programs of a version of Kubernetes, which has its
// own go.mod, with modules of its folder staging in the versions that staged names, or
// else in that of staging.
func kubernetesGoMod(version, staging string, own goMod, staged map[string]string) string {
	var out strings.Builder
	write := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	write("module %s/test/controlplane/kubernetes\n\ngo %s\n", modulePath, own.Go)
	for _, d := range own.GoDebug {
		write("godebug %s=%s", d.Key, d.Value)
	}
	write("\nreplace (")
	for _, r := range own.Replace {
		write("\t%s => %s %s", r.Old.Path, r.Old.Path, cmp.Or(staged[r.Old.Path], staging))
	}
	write(")\n\nrequire (\n\t%s %s", kubernetesModule, version)
	for _, r := range own.Require {
		write("\t%s %s // indirect", r.Path, cmp.Or(staged[r.Path], r.Version))
	}
	write(")")
	return out.String()
}

// stagingVersion is the version of client-go and its like: v0.30.14 for v1.30.14.
func stagingVersion(version string) (string, error) {
	parts := strings.Split(version, ".")
	number := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	if len(parts) != 3 || parts[0] != "v1" || slices.ContainsFunc(parts[1:], func(s string) bool { return !number(s) }) {
		return "", fmt.Errorf("%q is not a version of Kubernetes like v1.30.14", version)
	}
	return "v0." + parts[1] + "." + parts[2], nil
}
