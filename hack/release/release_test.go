package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// newMaker releases this test's own program for two platforms: nothing has to be
// built.
func newMaker(t *testing.T, change func(*options)) *maker {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := options{dist: t.TempDir(), imageFor: "linux/amd64,linux/arm64", pluginFor: "linux/amd64,windows/amd64"}
	if change != nil {
		change(&o)
	}
	return &maker{
		source: source{root: "../..", version: "v1.2.3", commit: "0123456789abcdef", at: time.Unix(1700000000, 0).UTC()}, options: o,
		work: t.TempDir(), digests: map[string]v1.Hash{},
		programs: map[string]string{"linux-amd64": program, "linux-arm64": program, "windows-amd64": program},
	}
}

func result(t *testing.T, m *maker, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(m.dist, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// images are those in the layout that was written, by platform.
func images(t *testing.T, m *maker) map[string]v1.Image {
	t.Helper()
	outer, err := layout.ImageIndexFromPath(filepath.Join(m.work, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]v1.Image{}
	for _, p := range []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}} {
		if out[p.Architecture], err = choose(outer, p); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestImage(t *testing.T) {
	first, second := newMaker(t, nil), newMaker(t, nil)
	for _, m := range []*maker{first, second} {
		if err := m.image(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const name = "freshbind-v1.2.3-image.tar"
	if !bytes.Equal(result(t, first, name), result(t, second, name)) {
		t.Error("the same source makes different bytes")
	}
	for arch, img := range images(t, first) {
		file, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		got := []any{file.OS, file.Architecture, file.Config.User, file.Config.Entrypoint, file.Config.Labels["org.opencontainers.image.revision"], len(file.RootFS.DiffIDs)}
		want := []any{"linux", arch, user, []string{"/freshbind"}, "0123456789abcdef", 2}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want,+got)\n%s", arch, diff)
		}
	}
	if diff := cmp.Diff([]string{"freshbind-v1.2.3.cdx.json", name}, first.made); diff != "" {
		t.Errorf("results (-want,+got)\n%s", diff)
	}
}

func TestImageOnAGivenBase(t *testing.T) {
	base := newMaker(t, nil)
	if err := base.image(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := newMaker(t, func(o *options) { o.base = filepath.Join(base.work, "layout") })
	if err := m.image(t.Context()); err != nil {
		t.Fatal(err)
	}
	for arch, img := range images(t, m) {
		layers, err := img.Layers()
		if err != nil {
			t.Fatal(err)
		}
		if len(layers) != 3 {
			t.Errorf("%s has %d layers, want the base's 2 and its own", arch, len(layers))
		}
	}
	wrong := newMaker(t, func(o *options) { o.base, o.imageFor = filepath.Join(base.work, "layout"), "linux/s390x" })
	wrong.programs["linux-s390x"] = wrong.programs["linux-amd64"]
	if err := wrong.image(t.Context()); err == nil || !strings.Contains(err.Error(), "linux/s390x") {
		t.Errorf("a base without the platform: %v", err)
	}
}

func TestCertificatesOfTheBase(t *testing.T) {
	pem := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(pem, []byte("a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := newMaker(t, func(o *options) { o.certificates = pem })
	if err := m.image(t.Context()); err != nil {
		t.Fatal(err)
	}
	missing := newMaker(t, func(o *options) { o.certificates = pem + "x" })
	if err := missing.image(t.Context()); err == nil || !strings.Contains(err.Error(), "-ca-certificates") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestBillOfMaterials(t *testing.T) {
	m := newMaker(t, nil)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.bill(program)
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := json.Unmarshal(data, &bom); err != nil {
		t.Fatal(err)
	}
	if got, want := bom.Metadata.Component.Version, "v1.2.3"; got != want {
		t.Errorf("it is of %s, want %s", got, want)
	}
	seen := map[string]bool{}
	for _, c := range *bom.Components {
		seen[c.Name] = c.Version != "" && c.PackageURL == "pkg:golang/"+c.Name+"@"+c.Version
	}
	for _, name := range []string{"stdlib", "github.com/google/go-containerregistry", "github.com/CycloneDX/cyclonedx-go"} {
		if !seen[name] {
			t.Errorf("component %s is missing, or has no version", name)
		}
	}
}

func TestPlugins(t *testing.T) {
	m := newMaker(t, nil)
	if err := m.plugins(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.checksums(t.Context()); err != nil {
		t.Fatal(err)
	}
	archive := "kubectl-freshbind-v1.2.3-linux-amd64.tar.gz"
	sum, err := digest(filepath.Join(m.dist, archive))
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{"kubectl-freshbind-v1.2.3-krew.yaml", "SHA256SUMS"} {
		if text := string(result(t, m, in)); !strings.Contains(text, sum) || !strings.Contains(text, archive) {
			t.Errorf("%s has no checksum of %s:\n%s", in, archive, text)
		}
	}
}

func TestPlatforms(t *testing.T) {
	got, err := platforms("linux/amd64,darwin/arm64")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][2]string{{"linux", "amd64"}, {"darwin", "arm64"}}, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
	for _, wrong := range []string{"", "linux", "linux/", "/amd64"} {
		if _, err := platforms(wrong); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}
