// Package docs tests that documents name what exists.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	repository   = ".."
	architecture = "../ARCHITECTURE.md"
)

func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	m := readModule(t)
	if missing := m.missing(string(text)); len(missing) > 0 {
		t.Errorf("ARCHITECTURE.md names what does not exist:\n%s", strings.Join(missing, "\n"))
	}
}

// Who adds a platform follows the files and functions of the smallest one.
func TestTheWalkOfANewPlatformNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("platforms.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walk, found := strings.Cut(string(text), "\n## How a platform is added\n")
	if !found {
		t.Fatal("platforms.md has no walk")
	}
	if missing := readModule(t).missing(walk); len(missing) > 0 {
		t.Errorf("platforms.md names what does not exist:\n%s", strings.Join(missing, "\n"))
	}
	const example = "test/exampleplatform"
	files, err := filepath.Glob(filepath.Join(repository, example, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of the example, %v", len(files), err)
	}
	for _, path := range files {
		// What the test runs on is no part of a platform.
		switch name := filepath.Base(path); name {
		case "crds.go", "world_test.go":
		default:
			if !strings.Contains(walk, "`"+example+"/"+name+"`") {
				t.Errorf("platforms.md leaves out %s", name)
			}
		}
	}
}

// Whoever adds a platform finds out from that walk which files beside its folder know of it, by
// those that know of OpenKruise Agents.
func TestTheWalkOfANewPlatformNamesWhatKnowsOne(t *testing.T) {
	text, err := os.ReadFile("platforms.md")
	if err != nil {
		t.Fatal(err)
	}
	_, listed, found := strings.Cut(string(text), "\n### What is outside of the folder\n")
	if !found {
		t.Fatal("platforms.md has no list of what is outside of a platform's folder")
	}
	var unlisted []string
	for _, root := range []string{"cmd", "internal", "controllers", "webhooks", "scheduler", "hack/generate"} {
		err := filepath.WalkDir(filepath.Join(repository, root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			path = filepath.ToSlash(strings.TrimPrefix(path, repository+string(filepath.Separator)))
			folder := path[:strings.LastIndex(path, "/")+1]
			if strings.Contains(strings.ToLower(string(source)), "kruise") && !isOfOpenKruise(path) &&
				!strings.Contains(listed, "`"+path+"`") && !strings.Contains(listed, "`"+folder+"`") {
				unlisted = append(unlisted, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(unlisted) > 0 {
		t.Errorf("platforms.md does not list what knows of OpenKruise Agents:\n%s", strings.Join(unlisted, "\n"))
	}
}

// isOfOpenKruise: the platform's own folder, and what is about its gateways.
func isOfOpenKruise(path string) bool {
	return slices.ContainsFunc([]string{"internal/platform/kruise/", "internal/routeserver/", "internal/sentinel/", "cmd/freshbind/app/routes"},
		func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

func TestArchitectureListsEveryPackage(t *testing.T) {
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)/` \\| .+\\|$").FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, row[1])
	}
	slices.Sort(listed)
	if diff := cmp.Diff(readModule(t).directories, listed); diff != "" {
		t.Errorf("packages and the lists in ARCHITECTURE.md (-packages,+lists):\n%s", diff)
	}
}

func TestWhatIsMissing(t *testing.T) {
	m := readModule(t)
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"a function":             {"`freshness.Judge`", nil},
		"a method":               {"`(*webhooks.Guard).Handle`", nil},
		"a variable":             {"`webhooks.BindHook`", nil},
		"a type":                 {"`freshness.Snapshot`", nil},
		"a file":                 {"`webhooks/guard.go`", nil},
		"a folder":               {"`internal/freshness/`", nil},
		"words":                  {"`make test`, `enforce`, `kubectl freshbind status`", nil},
		"in a block of code":     {"```\nfreshness.Nothing\n```", nil},
		"no such function":       {"`freshness.Juge`", []string{"freshness.Juge"}},
		"no such package":        {"`fresness.Judge`", []string{"fresness.Judge"}},
		"no such method":         {"`(*webhooks.Guard).Hande`", []string{"(*webhooks.Guard).Hande"}},
		"a method of another":    {"`(*webhooks.Guard).Before`", []string{"(*webhooks.Guard).Before"}},
		"a function as a method": {"`(*freshness.Verdict).Judge`", []string{"(*freshness.Verdict).Judge"}},
		"no such file":           {"`webhooks/gard.go`", []string{"webhooks/gard.go"}},
		"no such folder":         {"`internal/fresness/`", []string{"internal/fresness/"}},
		"a folder as a file":     {"`internal/freshness.go`", []string{"internal/freshness.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, m.missing(tc.text)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// module is what the source of this module declares.
type module struct {
	// directories have Go files, by their paths from the root.
	directories []string
	// names are package.Name and (*package.Type).Method.
	names map[string]bool
}

// readModule reads all packages, those of modules below test included.
func readModule(t *testing.T) module {
	t.Helper()
	m := module{names: map[string]bool{}}
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != repository:
			return skipped(path, entry.Name())
		case filepath.Ext(path) != ".go":
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		m.declare(file)
		directory, err := filepath.Rel(repository, filepath.Dir(path))
		if err != nil {
			return err
		}
		if directory = filepath.ToSlash(directory); !slices.Contains(m.directories, directory) {
			m.directories = append(m.directories, directory)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(m.directories)
	return m
}

// skipped leaves out the folders that the go command leaves out.
func skipped(path, name string) error {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" {
		return fs.SkipDir
	}
	return nil
}

func (m module) declare(file *ast.File) {
	pkg := file.Name.Name
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			m.names[funcName(pkg, d)] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					m.names[pkg+"."+s.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range s.Names {
						m.names[pkg+"."+name.Name] = true
					}
				}
			}
		}
	}
}

func funcName(pkg string, d *ast.FuncDecl) string {
	if d.Recv == nil {
		return pkg + "." + d.Name.Name
	}
	of := d.Recv.List[0].Type
	star, isPointer := of.(*ast.StarExpr)
	if isPointer {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	receiver := pkg + "." + of.(*ast.Ident).Name
	if isPointer {
		receiver = "(*" + receiver + ")"
	}
	return receiver + "." + d.Name.Name
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	goName    = regexp.MustCompile(`^(\(\*[a-z]\w*\.\w+\)\.\w+|[a-z]\w*\.\w+(\.\w+)?)$`)
	filePath  = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)*(/|/[\w.-]+\.(go|md|yaml|mod))$`)
)

// missing are the names and paths in the spans of code of a text that are not
// there, in their order.
func (m module) missing(text string) []string {
	var out []string
	for _, span := range codeSpan.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		if name := span[1]; goName.MatchString(name) && !m.names[name] || filePath.MatchString(name) && !exists(name) {
			out = append(out, name)
		}
	}
	return out
}

// exists reports whether there is a folder, for a path that ends in a slash, or a
// file of that path.
func exists(path string) bool {
	info, err := os.Stat(filepath.Join(repository, path))
	return err == nil && info.IsDir() == strings.HasSuffix(path, "/")
}
