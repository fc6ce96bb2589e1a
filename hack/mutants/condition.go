package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// condition is one that decides something in a package: not && or ||, but what they
// join.
type condition struct {
	// file is its path from the root of the repository.
	file, function, text string
	// loops says that it keeps a loop going, which forced to true would never end.
	loops bool
}

// forced is a condition that is always true, or always false.
type forced struct {
	condition int
	to        bool
}

// String is how the program that is broken is told.
func (f forced) String() string { return fmt.Sprintf("%d=%t", f.condition, f.to) }

// name is how people find it, and what an explanation begins with.
func (c condition) name(to bool) string {
	return fmt.Sprintf("%s:%s: %s = %t", c.file, c.function, c.text, to)
}

// variants are the ways to break conditions.
func variants(all []condition) []forced {
	var out []forced
	for i, c := range all {
		if !c.loops {
			out = append(out, forced{i, true})
		}
		out = append(out, forced{i, false})
	}
	return out
}

// finder finds the conditions of one file.
type finder struct {
	file, text string
	first      int
	offset     func(token.Pos) int
	seen       map[ast.Expr]bool
	found      []condition
	edits      []edit
	function   string
	times      map[string]int
}

// conditions finds those of a file, numbers them from first, and returns the text in
// which each can be forced.
func conditions(file, text string, first int) (found []condition, forcible, pkg string, err error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, "", "", fmt.Errorf("parse %s: %w", file, err)
	}
	f := &finder{
		file: file, text: text, first: first, seen: map[ast.Expr]bool{}, times: map[string]int{},
		offset: func(p token.Pos) int { return fset.Position(p).Offset },
	}
	for _, decl := range parsed.Decls {
		f.function = f.nameOf(decl)
		ast.Inspect(decl, f.visit)
	}
	return f.found, replace(text, 0, f.edits), parsed.Name.Name, nil
}

// nameOf is how a declaration is called in explanations.
func (f *finder) nameOf(decl ast.Decl) string {
	fn, ok := decl.(*ast.FuncDecl)
	if !ok {
		return "var"
	}
	if fn.Recv == nil {
		return fn.Name.Name
	}
	of := fn.Recv.List[0].Type
	receiver := strings.TrimPrefix(f.text[f.offset(of.Pos()):f.offset(of.End())], "*")
	return receiver + "." + fn.Name.Name
}

// visit looks at a node before those in it, so that what is outside is written first
// where two begin together.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.IfStmt:
		f.split(n.Cond, false)
	case *ast.ForStmt:
		f.split(n.Cond, true)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			f.cases(n.Body)
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.split(n, false)
		}
	case *ast.BinaryExpr:
		f.binary(n)
	}
	return true
}

func (f *finder) cases(body *ast.BlockStmt) {
	for _, clause := range body.List {
		for _, e := range clause.(*ast.CaseClause).List {
			f.split(e, false)
		}
	}
}

// binary takes comparisons and joined conditions wherever they are.
func (f *finder) binary(n *ast.BinaryExpr) {
	switch n.Op {
	case token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.split(n, false)
	}
}

// split adds the parts of an expression that are joined by &&, || and !.
func (f *finder) split(e ast.Expr, loops bool) {
	switch n := e.(type) {
	case nil:
		return
	case *ast.ParenExpr:
		f.split(n.X, loops)
		return
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.split(n.X, loops)
			return
		}
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			f.split(n.X, loops)
			f.split(n.Y, loops)
			return
		}
	}
	f.add(e, loops)
}

func (f *finder) add(e ast.Expr, loops bool) {
	if f.seen[e] {
		return
	}
	f.seen[e] = true
	from, to := f.offset(e.Pos()), f.offset(e.End())
	c := condition{file: f.file, function: f.function, text: strings.Join(strings.Fields(f.text[from:to]), " "), loops: loops}
	// The same words twice in one function are two conditions.
	f.times[c.name(true)]++
	if n := f.times[c.name(true)]; n > 1 {
		c.text += fmt.Sprintf(" (%d)", n)
	}
	f.edits = append(f.edits,
		edit{from, from, fmt.Sprintf("zzCondition(%d, ", f.first+len(f.found))}, edit{to, to, ")"})
	f.found = append(f.found, c)
}

const (
	// forcedVariable names the variable that forces a condition: its number, and to what.
	forcedVariable = "FRESHBIND_FORCED"
	// seenVariable names the variable with the file where conditions are noted, with
	// each value that they had.
	seenVariable = "FRESHBIND_SEEN"
)

// forcingFile is added to a package with so many conditions.
func forcingFile(pkg string, count int) string {
	return fmt.Sprintf(`package %s

import (
	"fmt"
	"os"
	"sync/atomic"
)

var (
	zzForced, zzTo = zzRead()
	zzSeen         [2 * (%d + 1)]atomic.Bool
	zzSeenFile     = zzOpen()
)

func zzRead() (i int, to bool) {
	if _, err := fmt.Sscanf(os.Getenv(%q), "%%d=%%t", &i, &to); err != nil {
		return -1, false
	}
	return i, to
}

func zzOpen() *os.File {
	f, err := os.OpenFile(os.Getenv(%q), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil
	}
	return f
}

func zzCondition[B ~bool](i int, c B) B {
	if i == zzForced {
		return B(zzTo)
	}
	at := 2 * i
	if c {
		at++
	}
	if zzSeenFile != nil && !zzSeen[at].Swap(true) {
		fmt.Fprintf(zzSeenFile, "%%d=%%t\n", i, c)
	}
	return c
}
`, pkg, count, forcedVariable, seenVariable)
}
