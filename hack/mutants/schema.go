package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// One build can have many mutants and run any of them: a function that a mutant
// breaks gets a broken copy beside it, and calls that when the copy is chosen (R. H.
// Untch, A. J. Offutt, M. J. Harrold: Mutation Analysis Using Mutant Schemata, ISSTA
// 1993). Linking is most of what a mutant costs by itself.

// chosenVariable names the variable that chooses a mutant by its number; empty for
// none.
const chosenVariable = "FRESHBIND_MUTANT"

// chosenFile is added to each package that has a mutant.
func chosenFile(pkg string) string {
	return "package " + pkg + "\n\nimport \"os\"\n\nvar zzChosen = os.Getenv(\"" + chosenVariable + "\")\n"
}

// schema is a file with mutants, each of which can be chosen.
type schema struct {
	pkg, text string
	// has are the numbers of the mutants in it. The others are in no function, and
	// need a build of their own.
	has []int
}

// newSchema puts mutants of one file, by their numbers, into its text.
func newSchema(text string, all map[int]mutant) (schema, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return schema{}, fmt.Errorf("parse: %w", err)
	}
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	s := schema{pkg: file.Name.Name}
	var edits []edit
	var copies strings.Builder
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		f := newFunction(fn, offset)
		calls := ""
		for _, i := range numbers(all) {
			at, err := all[i].find(text)
			if err != nil {
				return schema{}, err
			}
			if at.from <= f.body || at.to >= f.end {
				continue
			}
			s.has = append(s.has, i)
			calls += f.callOf(i)
			// Where a copy does not compile, the compiler names the mutant.
			fmt.Fprintf(&copies, "\n//line %s%d:1\n%s\n", lineOf, i, f.copyOf(i, text, at))
		}
		if calls != "" {
			edits = append(append(edits, f.names...), edit{f.body + 1, f.body + 1, calls})
		}
	}
	s.text = replace(text, 0, edits) + copies.String()
	return s, nil
}

// lineOf begins the name that the compiler is told for a copy's file.
const lineOf = "mutant"

func numbers(all map[int]mutant) []int {
	var out []int
	for i := range all {
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

// edit is a part of a text that is replaced.
type edit struct {
	from, to int
	by       string
}

// replace makes edits, whose offsets are those in a text that begins at start.
func replace(text string, start int, edits []edit) string {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	done := 0
	for _, e := range edits {
		out.WriteString(text[done : e.from-start])
		out.WriteString(e.by)
		done = e.to - start
	}
	out.WriteString(text[done:])
	return out.String()
}

// function is one that gets copies.
type function struct {
	// start and end are of all of it, body is its opening brace.
	start, body, end int
	name             edit
	// names gives one to whatever has to be handed over and has none.
	names []edit
	// receiver is "" for a plain function; it ends with a dot.
	receiver, types, arguments string
	returns                    bool
}

func newFunction(fn *ast.FuncDecl, offset func(token.Pos) int) function {
	f := function{
		start: offset(fn.Pos()), body: offset(fn.Body.Lbrace), end: offset(fn.End()),
		name:    edit{offset(fn.Name.Pos()), offset(fn.Name.End()), fn.Name.Name},
		returns: fn.Type.Results != nil,
	}
	if fn.Recv != nil {
		f.receiver = strings.Join(f.named("zzReceiver", fn.Recv, offset), "") + "."
	}
	if fn.Type.TypeParams != nil {
		f.types = "[" + strings.Join(f.named("zzType", fn.Type.TypeParams, offset), ", ") + "]"
	}
	arguments := f.named("zzParameter", fn.Type.Params, offset)
	if n := len(fn.Type.Params.List); n > 0 {
		if _, variadic := fn.Type.Params.List[n-1].Type.(*ast.Ellipsis); variadic {
			arguments[len(arguments)-1] += "..."
		}
	}
	f.arguments = strings.Join(arguments, ", ")
	return f
}

// named returns the names of fields, and gives some to those without.
func (f *function) named(prefix string, fields *ast.FieldList, offset func(token.Pos) int) []string {
	var out []string
	for _, field := range fields.List {
		if len(field.Names) == 0 {
			name := fmt.Sprint(prefix, len(out))
			at := offset(field.Type.Pos())
			f.names = append(f.names, edit{at, at, name + " "})
			out = append(out, name)
		}
		for _, n := range field.Names {
			name := n.Name
			if name == "_" {
				name = fmt.Sprint(prefix, len(out))
				f.names = append(f.names, edit{offset(n.Pos()), offset(n.End()), name})
			}
			out = append(out, name)
		}
	}
	return out
}

func (f *function) copyName(i int) string { return fmt.Sprintf("%s_zz%d", f.name.by, i) }

// callOf is what the function begins with.
func (f *function) callOf(i int) string {
	call := fmt.Sprintf("%s%s%s(%s)", f.receiver, f.copyName(i), f.types, f.arguments)
	if f.returns {
		call = "return " + call
	} else {
		call += "; return"
	}
	return fmt.Sprintf(" if zzChosen == \"%d\" { %s };", i, call)
}

// copyOf is the function, broken.
func (f *function) copyOf(i int, text string, broken edit) string {
	edits := append(slices.Clone(f.names), edit{f.name.from, f.name.to, f.copyName(i)}, broken)
	return replace(text[f.start:f.end], f.start, edits)
}
