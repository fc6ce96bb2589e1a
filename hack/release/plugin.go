package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// plugins makes an archive of the plugin of kubectl for each platform, and the
// manifest with which Krew installs it.
func (m *maker) plugins(ctx context.Context) error {
	list, err := platforms(m.pluginFor)
	if err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(m.root, "LICENSE"))
	if err != nil {
		return fmt.Errorf("reading the license: %w", err)
	}
	manifest := &strings.Builder{}
	fmt.Fprintf(manifest, krewHead, m.version)
	for _, p := range list {
		program, err := m.program(ctx, p[0], p[1])
		if err != nil {
			return err
		}
		content, err := os.ReadFile(program)
		if err != nil {
			return fmt.Errorf("reading the program: %w", err)
		}
		file := "kubectl-freshbind"
		entries := []entry{{name: "LICENSE", content: license, mode: 0o644}}
		if p[0] == "windows" {
			file += ".exe"
		} else {
			entries = append(entries, entry{name: "kubectl_complete-freshbind", link: file, mode: 0o777})
		}
		packed, err := tarball(m.at, append(entries, entry{name: file, content: content, mode: 0o755})...)
		if err != nil {
			return err
		}
		if packed, err = zipped(packed); err != nil {
			return err
		}
		name := fmt.Sprintf("kubectl-freshbind-%s-%s-%s.tar.gz", m.version, p[0], p[1])
		if err := m.write(name, packed); err != nil {
			return err
		}
		sum, err := digest(filepath.Join(m.dist, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(manifest, krewPlatform, p[0], p[1], m.version, name, sum, file)
	}
	return m.write("kubectl-freshbind-"+m.version+"-krew.yaml", []byte(manifest.String()))
}

const krewHead = `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: freshbind
spec:
  version: %s
  homepage: https://github.com/freshbind/freshbind
  shortDescription: Freshness of warm pools and their claims
  platforms:
`

const krewPlatform = `  - selector:
      matchLabels: {os: %s, arch: %s}
    uri: https://github.com/freshbind/freshbind/releases/download/%s/%s
    sha256: %s
    bin: %s
`
