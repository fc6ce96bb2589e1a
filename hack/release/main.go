// Release makes what is released, without a Docker daemon and without a
// registry: the image, its bill of materials, the plugin of kubectl, the chart,
// plain manifests, and checksums of all, signed if there is a key. The same source
// makes the same bytes, but for signatures.
//
//	cd hack/release && go run . -what image -dist dist
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

type options struct {
	what, dist, release, base, certificates, helm, push, key string
	imageFor, pluginFor                                      string
}

func main() {
	var o options
	flag.StringVar(&o.what, "what", "release", "image, or release for all.")
	flag.StringVar(&o.dist, "dist", "dist", "Folder for the results; a relative one is in the root of the repository.")
	flag.StringVar(&o.release, "version", "", "Version, v1.2.3; empty for the commit's.")
	flag.StringVar(&o.base, "base", "", "Base image as an OCI layout (a folder) or a tarball; empty for one with nothing but a user.")
	flag.StringVar(&o.certificates, "ca-certificates", "", "PEM file that becomes the base's trusted CAs; empty for none.")
	flag.StringVar(&o.helm, "helm", "", "Path of Helm, for the chart.")
	flag.StringVar(&o.push, "push", "", "Registry that gets the image as well, host[:port][/path]; empty for none.")
	flag.StringVar(&o.key, "key", "", "Private key that signs a release: a PEM file, one of cosign's, or SCHEME://… for the plugin sigstore-kms-SCHEME; empty for no signatures.")
	flag.StringVar(&o.imageFor, "image-platforms", "linux/amd64,linux/arm64", "Platforms of the image.")
	flag.StringVar(&o.pluginFor, "plugin-platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64", "Platforms of the plugin of kubectl.")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.what != "image" && o.what != "release" {
		return fmt.Errorf("-what %q: use image or release", o.what)
	}
	if o.what == "release" && o.helm == "" {
		return errors.New("-helm: required for a release")
	}
	root, err := findRoot(".")
	if err != nil {
		return err
	}
	if !filepath.IsAbs(o.dist) {
		o.dist = filepath.Join(root, o.dist)
	}
	if err := os.MkdirAll(o.dist, 0o755); err != nil {
		return fmt.Errorf("making the folder of results: %w", err)
	}
	src, err := describe(ctx, root, o.release)
	if err != nil {
		return err
	}
	switch {
	case o.what == "release" && src.commit == "":
		return fmt.Errorf("a release says which commit it is of, and %s is not a git repository; -what image works without", root)
	case o.what == "image" && o.release == "":
		// The chart of the same sources finds it.
		if src.tag, err = chartTag(root); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp("", "freshbind-release-")
	if err != nil {
		return fmt.Errorf("making a folder to work in: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	m := &maker{source: src, options: o, work: work, programs: map[string]string{}, digests: map[string]v1.Hash{}}
	steps := []func(context.Context) error{m.image}
	if o.what == "release" {
		// Asked once more before it is signed: building takes minutes.
		steps = []func(context.Context) error{m.asCommitted, m.image, m.plugins, m.chart, m.checksums, m.asCommitted, m.sign}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	slices.Sort(m.made)
	for _, name := range m.made {
		fmt.Println(filepath.Join(o.dist, name))
	}
	if m.pushed != "" {
		fmt.Println("pushed", m.pushed)
	}
	return nil
}

const checksumsFile = "SHA256SUMS"

// maker makes one release.
type maker struct {
	source
	options
	work string
	// programs are those that were built, by platform.
	programs map[string]string
	// digests are those of what is in registries, by name.
	digests map[string]v1.Hash
	// made are the names of the results.
	made []string
	// pushed is the image's name in the registry that it was pushed to.
	pushed string
}

// write puts a result into the folder of results.
func (m *maker) write(name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(m.dist, name), content, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	m.made = append(m.made, name)
	return nil
}

func (m *maker) checksums(context.Context) error {
	slices.Sort(m.made)
	var out strings.Builder
	for _, name := range m.made {
		sum, err := digest(filepath.Join(m.dist, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, name)
	}
	return m.write(checksumsFile, []byte(out.String()))
}

// platforms takes a list of os/arch apart.
func platforms(list string) ([][2]string, error) {
	var out [][2]string
	for _, p := range strings.Split(list, ",") {
		goos, arch, ok := strings.Cut(p, "/")
		if !ok || goos == "" || arch == "" {
			return nil, fmt.Errorf("platform %q: write os/arch", p)
		}
		out = append(out, [2]string{goos, arch})
	}
	return out, nil
}
