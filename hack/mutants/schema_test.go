package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewSchema(t *testing.T) {
	one := func(old, broken string) map[int]mutant {
		return map[int]mutant{7: {check: "c", file: "f.go", old: old, broken: broken}}
	}
	for name, tc := range map[string]struct {
		text    string
		mutants map[int]mutant
		want    string
		alone   bool
	}{
		"a function": {
			text: "// F does.\nfunc F(a int, b string) bool { return a > 1 }", mutants: one("a > 1", "true"),
			want: "// F does.\nfunc F(a int, b string) bool { if zzChosen == \"7\" { return F_zz7(a, b) }; return a > 1 }\n//line mutant7:1\nfunc F_zz7(a int, b string) bool { return true }\n",
		},
		"without a result": {
			text: "func f() { g() }", mutants: one("g()", ""),
			want: "func f() { if zzChosen == \"7\" { f_zz7(); return }; g() }\n//line mutant7:1\nfunc f_zz7() {  }\n",
		},
		"a method": {
			text: "func (r *T) m(xs ...int) (n int, err error) { return len(xs), nil }", mutants: one("len(xs)", "0"),
			want: "func (r *T) m(xs ...int) (n int, err error) { if zzChosen == \"7\" { return r.m_zz7(xs...) }; return len(xs), nil }\n//line mutant7:1\nfunc (r *T) m_zz7(xs ...int) (n int, err error) { return 0, nil }\n",
		},
		"nothing has a name": {
			text: "func (T) m(int, ...string) bool { return true }", mutants: one("true", "false"),
			want: "func (zzReceiver0 T) m(zzParameter0 int, zzParameter1 ...string) bool { if zzChosen == \"7\" { return zzReceiver0.m_zz7(zzParameter0, zzParameter1...) }; return true }\n//line mutant7:1\nfunc (zzReceiver0 T) m_zz7(zzParameter0 int, zzParameter1 ...string) bool { return false }\n",
		},
		"names that say nothing": {
			text: "func (_ T) m(_, b int) bool { return b > 1 }", mutants: one("b > 1", "false"),
			want: "func (zzReceiver0 T) m(zzParameter0, b int) bool { if zzChosen == \"7\" { return zzReceiver0.m_zz7(zzParameter0, b) }; return b > 1 }\n//line mutant7:1\nfunc (zzReceiver0 T) m_zz7(zzParameter0, b int) bool { return false }\n",
		},
		"types as parameters": {
			text: "func f[K comparable, V any](m map[K]V) int { return len(m) }", mutants: one("len(m)", "0"),
			want: "func f[K comparable, V any](m map[K]V) int { if zzChosen == \"7\" { return f_zz7[K, V](m) }; return len(m) }\n//line mutant7:1\nfunc f_zz7[K comparable, V any](m map[K]V) int { return 0 }\n",
		},
		"two in one function": {
			text: "func f() int { return 1 + 2 }",
			mutants: map[int]mutant{
				7: {check: "c", file: "f.go", old: "1", broken: "3"}, 8: {check: "d", file: "f.go", old: "2", broken: "4"},
			},
			want: "func f() int { if zzChosen == \"7\" { return f_zz7() }; if zzChosen == \"8\" { return f_zz8() }; return 1 + 2 }\n//line mutant7:1\nfunc f_zz7() int { return 3 + 2 }\n\n//line mutant8:1\nfunc f_zz8() int { return 1 + 4 }\n",
		},
		"in no function":            {text: "var x = 1\n\nfunc f() {}", mutants: one("1", "2"), want: "var x = 1\n\nfunc f() {}", alone: true},
		"the head of a function":    {text: "func f(a, b int) {}", mutants: one("a, b", "b, a"), want: "func f(a, b int) {}", alone: true},
		"more than one declaration": {text: "func f() { g() }\nfunc h() {}", mutants: one("g() }\nfunc h() {", ""), want: "func f() { g() }\nfunc h() {}", alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			const head = "package p\n\n"
			s, err := newSchema(head+tc.text, tc.mutants)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(head+strings.TrimSuffix(tc.want, "\n"), strings.TrimSuffix(s.text, "\n")); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if alone := len(s.has) == 0; alone != tc.alone || s.pkg != "p" {
				t.Errorf("package %s has %v", s.pkg, s.has)
			}
		})
	}
	if _, err := newSchema("package p\nfunc {", one("{", "")); err == nil {
		t.Error("what is no Go passes")
	}
	if _, err := newSchema("package p\nfunc f() {}", one("x", "y")); err == nil {
		t.Error("a text that is not there passes")
	}
}
