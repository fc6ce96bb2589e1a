package controlplane

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// proxyOf makes a module proxy that has versions of example.test/staged, and lists
// others of which it has no source.
func proxyOf(t *testing.T, has, listed []string) {
	t.Helper()
	root, cache := t.TempDir(), t.TempDir()
	for name, value := range map[string]string{"GOPROXY": "file://" + filepath.ToSlash(root), "GOSUMDB": "off", "GOMODCACHE": cache} {
		t.Setenv(name, value)
	}
	// The go command protects what it unpacks from being deleted.
	t.Cleanup(func() {
		if _, err := goCommand(context.WithoutCancel(t.Context()), cache, "clean", "-modcache"); err != nil {
			t.Error(err)
		}
	})
	const module = "example.test/staged"
	write := func(name string, content []byte) {
		path := filepath.Join(root, filepath.FromSlash(module), "@v", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goMod := []byte("module " + module + "\n")
	for _, v := range slices.Concat(has, listed) {
		write(v+".info", []byte(`{"Version":"`+v+`"}`))
		write(v+".mod", goMod)
	}
	for _, v := range has {
		var packed bytes.Buffer
		archive := zip.NewWriter(&packed)
		file, err := archive.Create(module + "@" + v + "/go.mod")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(goMod); err != nil {
			t.Fatal(err)
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		write(v+".zip", packed.Bytes())
	}
	write("list", []byte(strings.Join(slices.Concat(has, listed), "\n")))
}

func TestStagingVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		has, listed []string
		want        map[string]string
		log, err    string
	}{
		"there":                {has: []string{"v0.31.13", "v0.31.14"}, want: map[string]string{"example.test/staged": "v0.31.14"}},
		"not there":            {has: []string{"v0.31.9", "v0.31.13", "v0.32.0"}, want: map[string]string{"example.test/staged": "v0.31.13"}, log: "no proxy has example.test/staged v0.31.14: taking v0.31.13\n"},
		"nor the one before":   {has: []string{"v0.31.9"}, listed: []string{"v0.31.13"}, want: map[string]string{"example.test/staged": "v0.31.9"}, log: "no proxy has example.test/staged v0.31.14: taking v0.31.9\n"},
		"a proxy that fails":   {has: []string{"v0.31.13"}, listed: []string{"v0.31.14"}, err: "example.test/staged@v0.31.14"},
		"none of that version": {has: []string{"v0.30.14", "v0.32.0"}, want: map[string]string{"example.test/staged": "v0.31.14"}},
	} {
		t.Run(name, func(t *testing.T) {
			proxyOf(t, tc.has, tc.listed)
			var log bytes.Buffer
			got, err := stagingVersions(t.Context(), &log, t.TempDir(), "v0.31.14", []string{"example.test/staged"})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v and error %v, want one with %q", got, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("versions (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.log, log.String()); diff != "" {
				t.Errorf("log (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestPatchesBefore(t *testing.T) {
	versions := []string{"v0.31.10", "v0.31.9", "v0.31.11", "v0.31.14", "v0.31.15", "v0.31.13-rc.1", "v0.30.11", "v1.31.8", "v0.32.1"}
	for wanted, want := range map[string][]string{
		"v0.31.14": {"v0.31.11", "v0.31.10", "v0.31.9"},
		"v1.31.14": {"v1.31.8"},
		"v0.30.9":  nil,
	} {
		t.Run(wanted, func(t *testing.T) {
			got, err := patchesBefore(wanted, versions)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("patches (-want,+got):\n%s", diff)
			}
		})
	}
}
