package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A registry has of a chart what Helm looks for: its metadata, its package, and a
// tag without a plus.
func TestTheChartsLayout(t *testing.T) {
	m := newMaker(t, nil)
	packed, err := tarball(m.at, entry{name: "freshbind/values.yaml", mode: 0o644, content: []byte("a: b\n")},
		entry{name: "freshbind/Chart.yaml", mode: 0o644, content: []byte("apiVersion: v2\nname: freshbind\nversion: 1.2.3+build.4\nappVersion: 1.2.3\n")})
	if err != nil {
		t.Fatal(err)
	}
	if packed, err = zipped(packed); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "freshbind.tgz")
	if err := os.WriteFile(file, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.chartLayout(file); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(m.work, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if tag := list.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; tag != "1.2.3_build.4" {
		t.Errorf("tag %q", tag)
	}
	if got := list.Manifests[0].Digest; got != m.digests[chartRepository] {
		t.Errorf("digest %s, noted is %s", got, m.digests[chartRepository])
	}
	img, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	got := []any{manifest.MediaType, manifest.Config.MediaType, len(manifest.Layers), manifest.Layers[0].MediaType, manifest.Layers[0].Size}
	want := []any{types.OCIManifestSchema1, chartConfig, 1, chartContent, int64(len(packed))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-want,+got)\n%s", diff)
	}
	config, err := img.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	var metadata map[string]string
	if err := json.Unmarshal(config, &metadata); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"apiVersion": "v2", "name": "freshbind", "version": "1.2.3+build.4", "appVersion": "1.2.3"}, metadata); diff != "" {
		t.Errorf("metadata (-want,+got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"freshbind-v1.2.3-chart.oci.tar"}, m.made); diff != "" {
		t.Errorf("results (-want,+got)\n%s", diff)
	}
	empty, err := tarball(m.at, entry{name: "freshbind/values.yaml", mode: 0o644})
	if err != nil {
		t.Fatal(err)
	}
	if empty, err = zipped(empty); err != nil {
		t.Fatal(err)
	}
	if _, _, err := newChartArtifact(empty); err == nil || !strings.Contains(err.Error(), "Chart.yaml") {
		t.Errorf("a package without Chart.yaml: %v", err)
	}
}
