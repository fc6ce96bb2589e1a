package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// sourcesIn puts what the sources are known by into a folder, as an archive of
// this time would.
func sourcesIn(t *testing.T, dir string, at time.Time) {
	t.Helper()
	file := filepath.Join(dir, chartFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("name: freshbind\nversion: 9.9.9\nappVersion: \"1.4.0\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		"GIT_COMMITTER_DATE=1700000000 +0000", "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
}

// An archive of the sources has no history; whoever unpacks it, wherever, gets an
// image all the same, and one that names no commit.
func TestDescribe(t *testing.T) {
	at := time.Unix(1600000000, 0).UTC()
	for desc, tc := range map[string]struct {
		prepare     func(t *testing.T, dir string) (root string)
		version     string
		want        source
		wantsCommit bool
	}{
		"an unpacked archive": {
			prepare: func(t *testing.T, dir string) string { sourcesIn(t, dir, at); return dir },
			want:    source{version: "v0.0.0-source", tag: "0.0.0-source", at: at},
		},
		"an unpacked archive of a version": {
			prepare: func(t *testing.T, dir string) string { sourcesIn(t, dir, at); return dir },
			version: "v1.2.3", want: source{version: "v1.2.3", tag: "1.2.3", at: at},
		},
		"an archive unpacked in another repository": {
			prepare: func(t *testing.T, dir string) string {
				inner := filepath.Join(dir, "vendor", "freshbind")
				sourcesIn(t, inner, at)
				git(t, dir, "init", "--quiet")
				git(t, dir, "commit", "--quiet", "--allow-empty", "-m", "another project's")
				return inner
			},
			want: source{version: "v0.0.0-source", tag: "0.0.0-source", at: at},
		},
		"a repository": {
			prepare: func(t *testing.T, dir string) string {
				sourcesIn(t, dir, at)
				git(t, dir, "init", "--quiet")
				git(t, dir, "commit", "--quiet", "--allow-empty", "-m", "ours")
				return dir
			},
			want: source{at: time.Unix(1700000000, 0).UTC()}, wantsCommit: true,
		},
	} {
		t.Run(desc, func(t *testing.T) {
			root := tc.prepare(t, t.TempDir())
			got, err := describe(t.Context(), root, tc.version)
			if err != nil {
				t.Fatal(err)
			}
			if has := got.commit != ""; has != tc.wantsCommit {
				t.Errorf("commit %q", got.commit)
			}
			tc.want.root, tc.want.commit = root, got.commit
			if tc.wantsCommit {
				tc.want.version, tc.want.tag = "v0.0.0-"+got.commit[:12], "0.0.0-"+got.commit[:12]
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(source{})); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
	if _, err := describe(t.Context(), t.TempDir(), "1.2.3"); err == nil {
		t.Error("a folder without sources was described")
	}
}

func TestFindRoot(t *testing.T) {
	dir := t.TempDir()
	sourcesIn(t, dir, time.Now())
	below := filepath.Join(dir, "test", "release")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := findRoot(below); err != nil || got != dir {
		t.Errorf("%s, %v; want %s", got, err, dir)
	}
	if _, err := findRoot(t.TempDir()); err == nil || !strings.Contains(err.Error(), chartFile) {
		t.Errorf("outside of the sources: %v", err)
	}
}

func TestAReleaseIsOfACommit(t *testing.T) {
	dir := t.TempDir()
	sourcesIn(t, dir, time.Now())
	t.Chdir(dir)
	err := run(options{what: "release", helm: "helm", dist: t.TempDir(), release: "v1.2.3"})
	if err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("a release of an archive: %v", err)
	}
}

// The provenance names a commit, so nothing else may be in what is built.
func TestAReleaseIsOfThatCommitAlone(t *testing.T) {
	write := func(t *testing.T, dir, name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("package main\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for desc, tc := range map[string]struct {
		prepare func(t *testing.T, dir string)
		want    string
	}{
		"as it was committed": {func(*testing.T, string) {}, ""},
		"a file was changed":  {func(t *testing.T, dir string) { write(t, dir, chartFile) }, chartFile},
		"a file was added":    {func(t *testing.T, dir string) { write(t, dir, "cmd/freshbind/extra.go") }, "cmd/"},
		"a change is staged":  {func(t *testing.T, dir string) { write(t, dir, "staged.go"); git(t, dir, "add", ".") }, "staged.go"},
		"a file was removed": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, chartFile)); err != nil {
				t.Fatal(err)
			}
		}, chartFile},
		"results are there":    {func(t *testing.T, dir string) { write(t, dir, "out/SHA256SUMS") }, ""},
		"and something else":   {func(t *testing.T, dir string) { write(t, dir, "out/SHA256SUMS"); write(t, dir, "outer.go") }, "outer.go"},
		"a file git ignores":   {func(t *testing.T, dir string) { write(t, dir, "bin/freshbind") }, ""},
		"another's new folder": {func(t *testing.T, dir string) { write(t, dir, "out.d/x.go") }, "out.d/"},
	} {
		t.Run(desc, func(t *testing.T) {
			dir := t.TempDir()
			sourcesIn(t, dir, time.Now())
			if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("/bin/\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			git(t, dir, "init", "--quiet")
			git(t, dir, "add", ".")
			git(t, dir, "commit", "--quiet", "-m", "what is released")
			tc.prepare(t, dir)
			m := &maker{source: source{root: dir}, options: options{dist: filepath.Join(dir, "out")}}
			err := m.asCommitted(t.Context())
			if tc.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v; want an error that names %s", err, tc.want)
			}
		})
	}
}

// What make image makes is what the chart of the same sources asks for.
func TestTheImagesNameIsTheCharts(t *testing.T) {
	dir := t.TempDir()
	sourcesIn(t, dir, time.Now())
	tag, err := chartTag(dir)
	if err != nil || tag != "1.4.0" {
		t.Fatalf("tag %q, %v; want 1.4.0", tag, err)
	}
	values, err := os.ReadFile("../../charts/freshbind/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"\n  registry: " + registryName + "\n", "\n  repository: " + repository + "\n"} {
		if !strings.Contains(string(values), line) {
			t.Errorf("the chart's values have no line %q", line)
		}
	}
	m := newMaker(t, func(o *options) { o.imageFor = "linux/amd64" })
	m.tag, m.commit = tag, ""
	if err := m.image(t.Context()); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(m.work, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := manifest.Manifests[0].Annotations["io.containerd.image.name"], "ghcr.io/freshbind/freshbind:1.4.0"; got != want {
		t.Errorf("the image's name is %s, want %s", got, want)
	}
	img, err := choose(index, v1.Platform{OS: "linux", Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if commit, labelled := file.Config.Labels["org.opencontainers.image.revision"]; labelled {
		t.Errorf("an image of no commit says that it is of %q", commit)
	}
}

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	m := newMaker(t, func(o *options) { o.push = host + "/mirror" })
	m.tag = "1.2.3"
	if err := m.image(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := host + "/mirror/freshbind/freshbind:1.2.3"; m.pushed != want {
		t.Errorf("pushed %q, want %q", m.pushed, want)
	}
	ref, err := name.ParseReference(m.pushed)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		img, err := choose(index, v1.Platform{OS: "linux", Architecture: arch})
		if err != nil {
			t.Fatal(err)
		}
		if layers, err := img.Layers(); err != nil || len(layers) != 2 {
			t.Errorf("%s: %d layers, %v", arch, len(layers), err)
		}
	}
	nowhere := newMaker(t, func(o *options) { o.push = "http://" + host })
	if err := nowhere.image(t.Context()); err == nil || !strings.Contains(err.Error(), "-push") {
		t.Errorf("pushing to a URL: %v", err)
	}
}
