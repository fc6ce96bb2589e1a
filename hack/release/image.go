package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	ociarchive "github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// user is the one that distroless images call nonroot.
	user = "65532:65532"
	// registryName and repository are the chart's defaults.
	registryName = "ghcr.io"
	repository   = "freshbind/freshbind"
)

// image makes an OCI layout with an index of all platforms, as a tarball, and
// the bill of materials.
func (m *maker) image(ctx context.Context) error {
	list, err := platforms(m.imageFor)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, p := range list {
		program, err := m.program(ctx, p[0], p[1])
		if err != nil {
			return err
		}
		bill, err := m.bill(program)
		if err != nil {
			return err
		}
		if i == 0 {
			if err := m.write("freshbind-"+m.version+".cdx.json", bill); err != nil {
				return err
			}
		}
		platform := v1.Platform{OS: p[0], Architecture: p[1]}
		img, err := m.imageOf(platform, program, bill)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	if m.push != "" {
		if err := m.pushTo(ctx, m.push, index); err != nil {
			return err
		}
	}
	hash, err := index.Digest()
	if err != nil {
		return fmt.Errorf("making the image: %w", err)
	}
	full := registryName + "/" + repository
	m.digests[full] = hash
	return m.writeLayout("layout", "freshbind-"+m.version+"-image.tar", func(path layout.Path) error {
		return path.AppendIndex(index, layout.WithAnnotations(map[string]string{
			"org.opencontainers.image.ref.name": m.tag, "io.containerd.image.name": full + ":" + m.tag,
		}))
	})
}

// pushTo pushes the image, as whom docker and podman have logged in.
func (m *maker) pushTo(ctx context.Context, registry string, index v1.ImageIndex) error {
	ref, err := name.ParseReference(registry + "/" + repository + ":" + m.tag)
	if err != nil {
		return fmt.Errorf("reading -push: %w", err)
	}
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing the image: %w", err)
	}
	m.pushed = ref.String()
	return nil
}

func (m *maker) imageOf(platform v1.Platform, program string, bill []byte) (v1.Image, error) {
	base, err := m.baseOf(platform)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	const billAt = "usr/share/sbom/freshbind.cdx.json"
	layer, err := m.layer(slices.Concat([]entry{{name: "freshbind", content: content, mode: 0o755}},
		folders(billAt), []entry{{name: billAt, content: bill, mode: 0o644}})...)
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: m.at}, CreatedBy: "freshbind " + m.version,
	}})
	if err != nil {
		return nil, fmt.Errorf("adding the program to the base: %w", err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the base's configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = platform.OS, platform.Architecture, v1.Time{Time: m.at}
	file.Config.Entrypoint, file.Config.Cmd, file.Config.User, file.Config.WorkingDir = []string{"/freshbind"}, nil, user, "/"
	file.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "freshbind",
		"org.opencontainers.image.version":  m.version,
		"org.opencontainers.image.created":  m.at.Format("2006-01-02T15:04:05Z"),
		"org.opencontainers.image.source":   "https://github.com/freshbind/freshbind",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	if m.commit != "" {
		file.Config.Labels["org.opencontainers.image.revision"] = m.commit
	}
	img, err = mutate.ConfigFile(img, file)
	if err != nil {
		return nil, fmt.Errorf("setting the image's configuration: %w", err)
	}
	return img, nil
}

func (m *maker) layer(entries ...entry) (v1.Layer, error) {
	content, err := tarball(m.at, entries...)
	if err != nil {
		return nil, err
	}
	layer, err := ociarchive.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, ociarchive.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	return layer, nil
}

// baseOf is the given base image, or one with a user, a folder for temporary
// files, and CAs if there are any: a static program needs no more.
func (m *maker) baseOf(platform v1.Platform) (v1.Image, error) {
	if m.base != "" {
		return givenBase(m.base, platform)
	}
	entries := []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "tmp/", mode: 0o1777},
	}
	if m.certificates != "" {
		pem, err := os.ReadFile(m.certificates)
		if err != nil {
			return nil, fmt.Errorf("reading -ca-certificates: %w", err)
		}
		const at = "etc/ssl/certs/ca-certificates.crt"
		entries = append(entries, slices.Concat(folders(at)[1:], []entry{{name: at, content: pem, mode: 0o644}})...)
	}
	layer, err := m.layer(entries...)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err = mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: m.at}, CreatedBy: "user, tmp"}})
	if err != nil {
		return nil, fmt.Errorf("making the base: %w", err)
	}
	return base, nil
}

// givenBase reads the base's image for a platform.
func givenBase(path string, platform v1.Platform) (v1.Image, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading -base: %w", err)
	}
	if !info.IsDir() {
		img, err := ociarchive.ImageFromPath(path, nil)
		if err != nil {
			return nil, fmt.Errorf("reading -base: %w", err)
		}
		return fits(img, platform)
	}
	index, err := layout.ImageIndexFromPath(path)
	if err != nil {
		return nil, fmt.Errorf("reading -base: %w", err)
	}
	return choose(index, platform)
}

func choose(index v1.ImageIndex, platform v1.Platform) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading the index of -base: %w", err)
	}
	for _, d := range manifest.Manifests {
		if d.MediaType.IsIndex() {
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, fmt.Errorf("reading the index of -base: %w", err)
			}
			return choose(inner, platform)
		}
		if d.Platform == nil || d.Platform.Satisfies(platform) {
			img, err := index.Image(d.Digest)
			if err != nil {
				return nil, fmt.Errorf("reading an image of -base: %w", err)
			}
			return fits(img, platform)
		}
	}
	return nil, fmt.Errorf("-base has no image for %s", platform)
}

func fits(img v1.Image, platform v1.Platform) (v1.Image, error) {
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of -base: %w", err)
	}
	if file.OS != platform.OS || file.Architecture != platform.Architecture {
		return nil, fmt.Errorf("-base is for %s/%s, wanted is %s", file.OS, file.Architecture, platform)
	}
	return img, nil
}
