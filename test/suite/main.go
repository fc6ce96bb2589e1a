// Suite chooses the tests of `make test`, `make test-all` and `make matrix`: tests.txt
// says of each test that starts a control plane which of them it belongs to, and why.
//
//	go test $(go run ./test/suite short)   # what make test runs
//	go test $(go run ./test/suite rest)    # what make test-all runs besides
//	go test $(go run ./test/suite matrix)  # what make matrix runs on each Kubernetes
//	go run ./test/suite left-out           # says so
//	go run ./test/suite page FILE...       # which test showed what, from what go test -json wrote
package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed tests.txt
var table string

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, args []string) error {
	const usage = "use short, rest, matrix, left-out, or page and files that go test -json wrote"
	if len(args) != 1 && (len(args) == 0 || args[0] != "page") {
		return fmt.Errorf("got arguments %q: %s", args, usage)
	}
	const tests = "test"
	rows, err := load(table, tests)
	if err != nil {
		return err
	}
	switch args[0] {
	case "short":
		var args []string
		if args, err = shortArgs(rows, tests); err == nil {
			_, err = fmt.Fprintln(out, strings.Join(args, " "))
		}
	case "rest":
		_, err = fmt.Fprintln(out, strings.Join(argsOf(rows, isRest), " "))
	case "matrix":
		_, err = fmt.Fprintln(out, strings.Join(argsOf(rows, isMatrix), " "))
	case "left-out":
		_, err = fmt.Fprint(out, leftOut(rows))
	case "page":
		err = writePage(out, rows, args[1:])
	default:
		return fmt.Errorf("got argument %q: %s", args[0], usage)
	}
	return err
}

// What rows are chosen by.
func isRest(r row) bool   { return r.set == rest }
func isLeft(r row) bool   { return r.set != short }
func isMatrix(r row) bool { return r.matrix }

// shortArgs are arguments for go test: everything below root but what is left out. A
// package of which nothing would run is not named, since go test would link it.
func shortArgs(rows []row, root string) ([]string, error) {
	dirs, err := packages(root)
	if err != nil {
		return nil, err
	}
	left := map[string]bool{}
	for _, r := range rows {
		if isLeft(r) {
			left[filepath.Join(root, r.pkg, r.test)] = true
		}
	}
	args := []string{"-skip", pattern(rows, isLeft)}
	for _, dir := range dirs {
		tests, err := allTests(dir)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(tests, func(test string) bool { return !left[filepath.Join(dir, test)] }) {
			args = append(args, "./"+filepath.ToSlash(dir))
		}
	}
	return args, nil
}

// argsOf are arguments for go test: what is chosen, and nothing else.
func argsOf(rows []row, chosen func(row) bool) []string {
	args := []string{"-run", pattern(rows, chosen)}
	for _, r := range rows {
		if dir := "./test/" + r.pkg; chosen(r) && !slices.Contains(args, dir) {
			args = append(args, dir)
		}
	}
	return args
}

// pattern names the tests that are chosen, as -run and -skip take it. It has no
// character that a shell expands in an unquoted substitution.
func pattern(rows []row, chosen func(row) bool) string {
	var names []string
	for _, r := range rows {
		if !chosen(r) {
			continue
		}
		test, sub, found := strings.Cut(r.test, "/")
		test = "^" + test + "$"
		if found {
			test += "/^" + sub
		}
		if !slices.Contains(names, test) {
			names = append(names, test)
		}
	}
	return strings.Join(names, "|")
}

func leftOut(rows []row) string {
	var out strings.Builder
	count, pkg := 0, ""
	for _, r := range rows {
		if !isLeft(r) {
			continue
		}
		if count++; r.pkg != pkg {
			pkg = r.pkg
			fmt.Fprintf(&out, "  test/%s\n", pkg)
		}
		fmt.Fprintf(&out, "    %-58s %s\n", r.test, r.why)
	}
	return fmt.Sprintf("left out: %d tests that start control planes; "+
		"make test-rest runs them but for releases that make matrix runs, make test-all everything else; one: go test ./test/PACKAGE -run TEST\n%s",
		count, out.String())
}
