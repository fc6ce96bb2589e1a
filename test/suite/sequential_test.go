package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// starting are functions and methods that run what they are given in a goroutine.
var starting = []string{"Go", "TryGo", "Parallel", "RunParallel", "AfterFunc", "NewServer", "NewTLSServer"}

// startsGoroutine names the first goroutine that a file starts; "" for none.
func startsGoroutine(fset *token.FileSet, file *ast.File) (where string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			where = fset.Position(n.Pos()).String()
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(starting, f.Sel.Name) {
				where = fset.Position(n.Pos()).String()
			}
		}
		return where == ""
	})
	return where
}

// The Makefile leaves out the race detector where there is nothing to race.
func TestWhatIsTestedWithoutTheRaceDetectorStartsNoGoroutine(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^SEQUENTIAL := ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no list SEQUENTIAL")
	}
	packages := strings.Fields(strings.ReplaceAll(string(list[1]), `\`, ""))
	if len(packages) < 2 {
		t.Fatalf("the list is read as %q", packages)
	}
	for _, dir := range packages {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Errorf("%s has no Go files", dir)
		}
		for _, path := range files {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if where := startsGoroutine(fset, file); where != "" {
				t.Errorf("%s starts a goroutine: take %s out of SEQUENTIAL in the Makefile", where, dir)
			}
		}
	}
}

func TestStartsGoroutine(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want bool
	}{
		"nothing":       {`f()`, false},
		"a statement":   {`go f()`, true},
		"in a function": {`f := func() { go f() }; f()`, true},
		"a group":       {`group.Go(f)`, true},
		"a test":        {`t.Parallel()`, true},
		"a server":      {`httptest.NewServer(f)`, true},
		"a benchmark":   {`b.RunParallel(f)`, true},
	} {
		t.Run(name, func(t *testing.T) {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, "x.go", "package x\nfunc g() { "+tc.body+" }", parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if got := startsGoroutine(fset, file); (got != "") != tc.want {
				t.Errorf("startsGoroutine = %q, want one %t", got, tc.want)
			}
		})
	}
}
