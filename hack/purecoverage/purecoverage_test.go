package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThePackagesAreThoseThatTheLinterKeepsPure(t *testing.T) {
	config, err := os.ReadFile("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := pure(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"internal/freshness", "internal/revision", "internal/settings"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %v", want, got)
		}
	}
}

func TestPure(t *testing.T) {
	const head = "linters:\n  settings:\n    depguard:\n      rules:\n"
	cases := map[string]struct {
		config string
		want   []string
		err    string
	}{
		"two":        {head + "        pure: {files: ['**/b/*.go', '**/a/c/*.go', '!$test']}\n        seam: {files: ['**/d/*.go']}", []string{"a/c", "b"}, ""},
		"no rule":    {head + "        seam: {files: ['**/d/*.go']}", nil, "rules.pure.files: it names no package"},
		"a wildcard": {head + "        pure: {files: ['**/b/**/*.go']}", nil, `rules.pure.files: "**/b/**/*.go": write **/FOLDER/*.go`},
		"a file":     {head + "        pure: {files: ['b/b.go']}", nil, "write **/FOLDER/*.go"},
		"no YAML":    {"{", nil, "read .golangci.yml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := pure([]byte(tc.config))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestReport(t *testing.T) {
	const profile = `mode: set
github.com/freshbind/freshbind/a/a.go:3.16,5.2 19 1
github.com/freshbind/freshbind/a/a.go:7.16,9.2 1 0
github.com/freshbind/freshbind/b/y.go:12.2,13.3 2 0
github.com/freshbind/freshbind/b/y.go:14.2,15.3 0 0
github.com/freshbind/freshbind/b/y.go:2.2,3.3 38 4
github.com/freshbind/freshbind/b/x.go:20.2,23.3 1 0
`
	const (
		a    = "a                         95.0% of 20 statements\n"
		b    = "b                         92.7% of 41 statements\n"
		left = "  b/x.go:20: 1\n  b/y.go:12: 2"
	)
	cases := map[string]struct {
		packages []string
		want     string
		err      string
	}{
		"enough":             {[]string{"a"}, a, ""},
		"too little":         {[]string{"a", "b"}, a + b, "b: its tests run 92.7% of its statements, want 95%; they leave out\n" + left},
		"of what is not one": {[]string{"a", "c"}, a, "c: it has no statements, or no tests"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			covered, err := read(profile)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			message := ""
			if err := report(&out, tc.packages, covered); err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("printed (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.err, message); diff != "" {
				t.Errorf("error (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"too short":     "a.go:1.2,3.4 1",
		"no line":       "a.go:x.2,3.4 1 1",
		"no statements": "a.go:1.2,3.4 x 1",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := read("mode: set\n" + line + "\n"); err == nil || !strings.Contains(err.Error(), line) {
				t.Errorf("got %v, %v, want an error that has the line", got, err)
			}
		})
	}
}
