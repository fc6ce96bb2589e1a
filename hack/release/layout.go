package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeLayout writes an OCI layout, which is made in a folder, as one file that
// podman, skopeo, containerd and Docker can load.
func (m *maker) writeLayout(folder, result string, add func(layout.Path) error) error {
	dir := filepath.Join(m.work, folder)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("making the layout of %s: %w", result, err)
	}
	if err := add(path); err != nil {
		return fmt.Errorf("writing the layout of %s: %w", result, err)
	}
	var entries []entry
	err = filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		if d.IsDir() {
			entries = append(entries, entry{name: filepath.ToSlash(rel) + "/", mode: 0o755})
			return nil
		}
		content, err := os.ReadFile(file)
		entries = append(entries, entry{name: filepath.ToSlash(rel), content: content, mode: 0o644})
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the layout of %s: %w", result, err)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	content, err := tarball(m.at, entries...)
	if err != nil {
		return err
	}
	return m.write(result, content)
}
