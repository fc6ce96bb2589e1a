package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/freshness"
)

// The page of reasons has each word that people see, and no other: who is paged at night
// looks there.
func TestReasonsNamesEveryWord(t *testing.T) {
	text, err := os.ReadFile("reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	for heading, want := range map[string]map[string]string{
		"Reasons of a verdict": faults(),
		"Verdicts":             returnedBy(t, "webhooks", "outcome", "verdict"),
		"Operations":           operations(t),
		"Audit annotations":    auditAnnotations(t, "webhooks"),
		"Events":               events(t, "controllers", "internal/manager"),
		"Classes of the audit": classes(),
	} {
		if diff := cmp.Diff(want, rowsOf(string(text), heading)); diff != "" {
			t.Errorf("%s (-code,+reasons.md):\n%s", heading, diff)
		}
	}
}

// unchecked is in place of what the code does not say.
const unchecked = ""

var reasonsRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]*)\\|")

// rowsOf are the rows of the table below a heading: the first column to the second where
// the code has that, too.
func rowsOf(text, heading string) map[string]string {
	_, section, _ := strings.Cut(text, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	second := strings.Contains(section, "| at fault |") || strings.Contains(section, "| counted as |")
	rows := map[string]string{}
	for _, row := range reasonsRow.FindAllStringSubmatch(section, -1) {
		rows[row[1]] = unchecked
		if second {
			rows[row[1]] = strings.Trim(row[2], " `")
		}
	}
	return rows
}

func faults() map[string]string {
	words := map[freshness.Fault]string{freshness.FaultMember: "member", freshness.FaultClaim: "claim", freshness.FaultNobody: "neither"}
	out := map[string]string{}
	for _, r := range freshness.Reasons() {
		out[string(r)] = words[r.Fault()]
	}
	return out
}

func classes() map[string]string {
	columns := map[checker.Class]string{checker.Raced: "RACED", checker.Tolerated: "TOLERATED", checker.Stale: "STALE"}
	out := map[string]string{}
	for _, c := range checker.Classes() {
		out[string(c)] = columns[c]
		if c.Bad() && c != checker.Stale {
			out[string(c)] = "WORSE"
		}
	}
	return out
}

// operations are the writes that are judged.
func operations(t *testing.T) map[string]string {
	t.Helper()
	out := constants(t, "internal/freshness", func(_, kind string) bool { return kind == "Operation" })
	for _, noWrite := range []freshness.Operation{freshness.Released, freshness.Idle, freshness.Stored} {
		delete(out, string(noWrite))
	}
	return out
}

// events are the reasons of events but for those of denials.
func events(t *testing.T, below ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, root := range below {
		err := filepath.WalkDir(filepath.Join(repository, root), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				directory := strings.TrimPrefix(filepath.ToSlash(path), repository+"/")
				maps.Copy(out, constants(t, directory, func(name, _ string) bool { return strings.HasPrefix(name, "event") }))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// constants are the strings that a package's constants have, chosen by name and type.
func constants(t *testing.T, directory string, chosen func(name, kind string) bool) map[string]string {
	t.Helper()
	out := map[string]string{}
	for node := range nodes(t, directory) {
		spec, is := node.(*ast.ValueSpec)
		if !is {
			continue
		}
		kind, _ := spec.Type.(*ast.Ident)
		for i, name := range spec.Names {
			if i < len(spec.Values) && chosen(name.Name, nameOf(kind)) {
				maps.Copy(out, literals(spec.Values[i]))
			}
		}
	}
	return out
}

// returnedBy are the strings that a method returns.
func returnedBy(t *testing.T, directory, receiver, method string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for node := range nodes(t, directory) {
		f, is := node.(*ast.FuncDecl)
		if !is || f.Name.Name != method || f.Recv == nil {
			continue
		}
		if of, is := f.Recv.List[0].Type.(*ast.Ident); is && of.Name == receiver {
			maps.Copy(out, literals(f.Body))
		}
	}
	return out
}

// auditAnnotations are the keys of what is assigned to AuditAnnotations.
func auditAnnotations(t *testing.T, directory string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for node := range nodes(t, directory) {
		assigned, is := node.(*ast.AssignStmt)
		if !is {
			continue
		}
		to, is := assigned.Lhs[0].(*ast.SelectorExpr)
		if !is || to.Sel.Name != "AuditAnnotations" {
			continue
		}
		annotations, is := assigned.Rhs[0].(*ast.CompositeLit)
		if !is {
			t.Fatalf("%s: audit annotations are not written out where they are set", directory)
		}
		for _, element := range annotations.Elts {
			if pair, is := element.(*ast.KeyValueExpr); is {
				maps.Copy(out, literals(pair.Key))
			}
		}
	}
	return out
}

// nodes are all parts of the source of a package, its tests left out.
func nodes(t *testing.T, directory string) iter.Seq[ast.Node] {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(repository, directory, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	return func(yield func(ast.Node) bool) {
		for _, path := range paths {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for node := range ast.Preorder(file) {
				if !yield(node) {
					return
				}
			}
		}
	}
}

// literals are the strings that a part of the source has written out.
func literals(in ast.Node) map[string]string {
	out := map[string]string{}
	for node := range ast.Preorder(in) {
		if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				out[text] = unchecked
			}
		}
	}
	return out
}

func nameOf(kind *ast.Ident) string {
	if kind == nil {
		return ""
	}
	return kind.Name
}
