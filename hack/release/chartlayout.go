package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// How Helm calls a chart in a registry.
const (
	chartConfig  = types.MediaType("application/vnd.cncf.helm.config.v1+json")
	chartContent = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")
	// chartRepository is the chart's, beside the image's.
	chartRepository = registryName + "/freshbind/charts/freshbind"
)

// chartLayout writes the packaged chart as an OCI layout, which can be copied to
// any registry and installed from there.
func (m *maker) chartLayout(packaged string) error {
	content, err := os.ReadFile(packaged)
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	artifact, version, err := newChartArtifact(content)
	if err != nil {
		return err
	}
	img, err := partial.CompressedToImage(artifact)
	if err != nil {
		return fmt.Errorf("making the chart's layout: %w", err)
	}
	hash, err := img.Digest()
	if err != nil {
		return fmt.Errorf("making the chart's layout: %w", err)
	}
	m.digests[chartRepository] = hash
	return m.writeLayout("chart", "freshbind-"+m.version+"-chart.oci.tar", func(path layout.Path) error {
		return path.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version}))
	})
}

// chartArtifact is a chart as registries have it: its metadata is the
// configuration, its package the only layer.
type chartArtifact struct {
	manifest, config []byte
	layer            v1.Layer
}

// newChartArtifact returns a packaged chart, and the tag that Helm looks for.
func newChartArtifact(packaged []byte) (*chartArtifact, string, error) {
	config, err := chartMetadata(packaged)
	if err != nil {
		return nil, "", err
	}
	var about struct {
		Name, Version, Description, Home string
	}
	if err := json.Unmarshal(config, &about); err != nil {
		return nil, "", fmt.Errorf("reading the chart's metadata: %w", err)
	}
	a := &chartArtifact{config: config, layer: static.NewLayer(packaged, chartContent)}
	configHash, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, "", fmt.Errorf("hashing the chart's metadata: %w", err)
	}
	layer, err := partial.Descriptor(a.layer)
	if err != nil {
		return nil, "", fmt.Errorf("describing the chart's package: %w", err)
	}
	a.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: v1.Descriptor{MediaType: chartConfig, Digest: configHash, Size: size}, Layers: []v1.Descriptor{*layer},
		Annotations: map[string]string{
			"org.opencontainers.image.title": about.Name, "org.opencontainers.image.version": about.Version,
			"org.opencontainers.image.description": about.Description, "org.opencontainers.image.url": about.Home,
		},
	})
	// A tag has no plus, and Helm writes this instead.
	return a, strings.ReplaceAll(about.Version, "+", "_"), err
}

// chartMetadata is Chart.yaml of a packaged chart, as JSON.
func chartMetadata(packaged []byte) ([]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(packaged))
	if err != nil {
		return nil, fmt.Errorf("unpacking the chart: %w", err)
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the packaged chart has no Chart.yaml")
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking the chart: %w", err)
		}
		if _, name, _ := strings.Cut(header.Name, "/"); name != "Chart.yaml" {
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			return nil, fmt.Errorf("unpacking the chart: %w", err)
		}
		metadata, err := yaml.YAMLToJSON(content)
		if err != nil {
			return nil, fmt.Errorf("reading the chart's metadata: %w", err)
		}
		return metadata, nil
	}
}

func (a *chartArtifact) RawConfigFile() ([]byte, error)                         { return a.config, nil }
func (a *chartArtifact) RawManifest() ([]byte, error)                           { return a.manifest, nil }
func (a *chartArtifact) MediaType() (types.MediaType, error)                    { return types.OCIManifestSchema1, nil }
func (a *chartArtifact) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return a.layer, nil }
