package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// starts are the functions that start programs of a control plane, or a browser: a test
// that reaches one of them is a cluster test.
var starts = map[string]bool{
	"controlplane.Start": true, "scenario.StartWorld": true, "fixture.New": true, "upstream.Start": true,
	"page.startBrowser": true,
}

// clusterTests finds the tests of a package that start a control plane, by
// following names through the functions of its folder. A name too many makes one
// test more need a row, never one less.
func clusterTests(dir string) ([]string, error) {
	files, err := parseFiles(dir, "*.go")
	if err != nil {
		return nil, err
	}
	uses := map[string]map[string]bool{}
	for _, file := range files {
		for _, d := range file.Decls {
			for name, node := range declared(d) {
				mergeNames(uses, name, namesIn(node, file.Name.Name))
			}
		}
	}
	var tests []string
	for name := range uses {
		if strings.HasPrefix(name, "Test") && name != "TestMain" && reaches(uses, name, map[string]bool{}) {
			tests = append(tests, name)
		}
	}
	slices.Sort(tests)
	return tests, nil
}

func parseFiles(dir, pattern string) ([]*ast.File, error) {
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	var files []*ast.File
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}

// allTests are the tests, fuzz targets and examples of a package.
func allTests(dir string) ([]string, error) {
	files, err := parseFiles(dir, "*_test.go")
	if err != nil {
		return nil, err
	}
	var tests []string
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && f.Name.Name != "TestMain" && isTest.MatchString(f.Name.Name) {
				tests = append(tests, f.Name.Name)
			}
		}
	}
	return tests, nil
}

// isTest tells what go test runs.
var isTest = regexp.MustCompile(`^(Test|Fuzz|Example)(\P{Ll}|$)`)

// declared are the functions, variables and constants of a declaration.
func declared(d ast.Decl) map[string]ast.Node {
	nodes := map[string]ast.Node{}
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = method(name)
		}
		nodes[name] = d
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if values, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range values.Names {
					nodes[name.Name] = values
				}
			}
		}
	}
	return nodes
}

// method is how a method goes, whatever type has it.
func method(name string) string { return "." + name }

func namesIn(node ast.Node, pkg string) map[string]bool {
	names := map[string]bool{}
	var visit func(ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				names[x.Name+"."+n.Sel.Name] = true
			}
			names[method(n.Sel.Name)] = true
			ast.Inspect(n.X, visit)
			return false
		case *ast.Ident:
			names[n.Name], names[pkg+"."+n.Name] = true, true
		}
		return true
	}
	ast.Inspect(node, visit)
	return names
}

func mergeNames(uses map[string]map[string]bool, name string, names map[string]bool) {
	if uses[name] == nil {
		uses[name] = map[string]bool{}
	}
	for n := range names {
		uses[name][n] = true
	}
}

func reaches(uses map[string]map[string]bool, name string, seen map[string]bool) bool {
	if seen[name] {
		return false
	}
	seen[name] = true
	for used := range uses[name] {
		if starts[used] || uses[used] != nil && reaches(uses, used, seen) {
			return true
		}
	}
	return false
}

// packages are the folders below test/ whose tests may start a control plane:
// those of this module.
func packages(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
			return filepath.SkipDir
		}
		tests, err := filepath.Glob(filepath.Join(path, "*_test.go"))
		if len(tests) > 0 {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find packages: %w", err)
	}
	return dirs, nil
}
