package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is the folder of all tests.
const root = ".."

func TestEveryTestThatStartsAControlPlaneHasARow(t *testing.T) {
	rows, err := load(table, root)
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := packages(root)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, dir := range dirs {
		pkg, err := filepath.Rel(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		tests, err := clusterTests(dir)
		if err != nil {
			t.Fatal(err)
		}
		found[pkg] = tests
	}
	for _, fault := range faults(rows, found) {
		t.Error(fault)
	}
}

// What make test runs shows each property, but for those that need no control plane:
// unit tests of package routes and of webhooks show them.
func TestShortShowsEveryProperty(t *testing.T) {
	rows, err := parse(table)
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, p := range propertyNames() {
		shown := slices.ContainsFunc(rows, func(r row) bool { return r.set == short && slices.Contains(r.shows, p) })
		if !shown && p != "routes" {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no short test shows: %v", missing)
	}
}

func TestArguments(t *testing.T) {
	rows, err := parse(`
# a remark
short a TestShort fresh  one
short a TestBoth/new fresh one
rest  a TestBoth/old fresh,once two words
rest  a TestSame -  one
rest,matrix  b TestSame -  another
releases a TestBoth/odd - odd releases
short,matrix c TestCore - core
short h TestAlone - alone
`)
	if err != nil {
		t.Fatal(err)
	}
	const pattern = "^TestBoth$/^old|^TestSame$"
	t.Chdir(t.TempDir())
	for path, source := range map[string]string{
		"test/a/a_test.go":       "package a\nfunc TestSame() {}\nfunc TestBoth() {}",
		"test/b/b_test.go":       "package b\nfunc TestMain() {}\nfunc TestSame() {}\nfunc Testament() {}\nfunc (x) TestOfAMethod() {}",
		"test/c/c_test.go":       "package c\nfunc TestSame() {}\nfunc TestCore() {}",
		"test/d/e/fuzz_test.go":  "package e\nfunc FuzzParse() {}",
		"test/f/f.go":            "package f\nfunc TestNothing() {}",
		"test/g/example_test.go": "package g\nfunc Example() {}",
		"test/h/h_test.go":       "package h\nfunc TestAlone() {}",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(source), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := shortArgs(rows, "test")
	if err != nil {
		t.Fatal(err)
	}
	// Of b nothing is left that would run.
	if diff := cmp.Diff([]string{"-skip", pattern + "|^TestBoth$/^odd", "./test/a", "./test/c", "./test/d/e", "./test/g", "./test/h"}, got); diff != "" {
		t.Errorf("short (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"-run", pattern, "./test/a", "./test/b"}, argsOf(rows, isRest)); diff != "" {
		t.Errorf("rest (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"-run", "^TestSame$|^TestCore$", "./test/b", "./test/c"}, argsOf(rows, isMatrix)); diff != "" {
		t.Errorf("matrix (-want,+got):\n%s", diff)
	}
	output := leftOut(rows)
	if !strings.HasPrefix(output, "left out: 4 tests") || !strings.Contains(output, "two words") || strings.Contains(output, "TestShort") {
		t.Errorf("left out:\n%s", output)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"no reason":           "short a TestA fresh",
		"an unknown set":      "long a TestA fresh why",
		"an unknown mark":     "short,rest a TestA fresh why",
		"an unknown property": "short a TestA fast why",
	} {
		t.Run(name, func(t *testing.T) {
			if rows, err := parse(line); err == nil {
				t.Errorf("got %v, want an error", rows)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	found := map[string][]string{"a": {"TestA", "TestNew"}, "b": {"TestA"}}
	tests := map[string]struct {
		rows []row
		want []string
	}{
		"all well": {rows: []row{{pkg: "a", test: "TestA/x", set: short}, {pkg: "a", test: "TestA/y", set: rest}, {pkg: "a", test: "TestNew", set: short}, {pkg: "b", test: "TestA/x", set: short}}},
		"a new test": {
			rows: []row{{pkg: "a", test: "TestA"}, {pkg: "b", test: "TestA"}},
			want: []string{"test/a: TestNew starts a control plane, and tests.txt has no row for it"},
		},
		"a test that is gone": {
			rows: []row{{pkg: "a", test: "TestA"}, {pkg: "a", test: "TestNew", set: short}, {pkg: "b", test: "TestA"}, {pkg: "b", test: "TestGone"}},
			want: []string{"test/b has no TestGone that starts a control plane"},
		},
		"one name, two sets": {
			rows: []row{{pkg: "a", test: "TestA", set: short}, {pkg: "a", test: "TestNew", set: short}, {pkg: "b", test: "TestA", set: rest}},
			want: []string{"TestA is short in one row and rest in another"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, faults(tc.rows, found)); diff != "" {
				t.Errorf("faults (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestClusterTests(t *testing.T) {
	dir := t.TempDir()
	source := `package p

import "testing"

var start = func() { controlplane.Start() }

type world struct{}

func (w *world) begin() { start() }

func TestByAMethod(t *testing.T) { new(world).begin() }

func TestByAVariable(t *testing.T) { start() }

func TestOfAnother(t *testing.T) { new(process).Start() }

func TestMain(m *testing.M) { start() }
`
	if err := os.WriteFile(filepath.Join(dir, "p_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := clusterTests(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"TestByAMethod", "TestByAVariable"}, got); diff != "" {
		t.Errorf("cluster tests (-want,+got):\n%s", diff)
	}
}
