package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/controlplane"
)

func TestConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want string
		names      []string
	}{
		"joined": {
			text:  "func f(a, b bool, n int) bool { return a && !(b || n < 2) }",
			want:  "func f(a, b bool, n int) bool { return zzCondition(7, a) && !(zzCondition(8, b) || zzCondition(9, n < 2)) }",
			names: []string{"f: a = true", "f: a = false", "f: b = true", "f: b = false", "f: n < 2 = true", "f: n < 2 = false"},
		},
		"a loop is not made to last": {
			text:  "func (s *set[T]) f(n int) { for n > 0 { n-- } }",
			want:  "func (s *set[T]) f(n int) { for zzCondition(7, n > 0) { n-- } }",
			names: []string{"set[T].f: n > 0 = false"},
		},
		"cases": {
			text:  "func f(a bool, n int) { switch { case a, n == 1: }; switch n { case 2: } }",
			want:  "func f(a bool, n int) { switch { case zzCondition(7, a), zzCondition(8, n == 1): }; switch n { case 2: } }",
			names: []string{"f: a = true", "f: a = false", "f: n == 1 = true", "f: n == 1 = false"},
		},
		"one within another": {
			text:  "func f(a, b int, c bool) { if a == b == c { g(a < b) } }",
			want:  "func f(a, b int, c bool) { if zzCondition(7, zzCondition(8, a == b) == c) { g(zzCondition(9, a < b)) } }",
			names: []string{"f: a == b == c = true", "f: a == b == c = false", "f: a == b = true", "f: a == b = false", "f: a < b = true", "f: a < b = false"},
		},
		"the same twice": {
			text:  "func f(a bool) { if a {}; if a {} }",
			want:  "func f(a bool) { if zzCondition(7, a) {}; if zzCondition(8, a) {} }",
			names: []string{"f: a = true", "f: a = false", "f: a (2) = true", "f: a (2) = false"},
		},
		"constants cannot be forced": {text: "const c = 1 < 2", want: "const c = 1 < 2"},
	} {
		t.Run(name, func(t *testing.T) {
			const head = "package p\n\n"
			found, got, pkg, err := conditions("d/f.go", head+tc.text, 7)
			if err != nil {
				t.Fatal(err)
			}
			if pkg != "p" {
				t.Errorf("the package is %q, want p", pkg)
			}
			if diff := cmp.Diff(head+tc.want, got); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			var names []string
			for _, v := range variants(found) {
				names = append(names, strings.TrimPrefix(found[v.condition].name(v.to), "d/f.go:"))
			}
			if diff := cmp.Diff(tc.names, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForcing(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/p\n\ngo 1.24\n",
		"p/p.go": `package p

func Small(n int) bool { return n < 10 || n == 1000 }

func Never(a bool) bool { return a }

func Guess(n int) int {
	if n > 5 {
		return n
	}
	return n
}
`,
		"p/p_test.go": `package p

import "testing"

func TestSmall(t *testing.T) {
	if !Small(1) || Small(20) {
		t.Error("it is not")
	}
}

func TestGuess(t *testing.T) { Guess(1); Guess(6) }
`,
	} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tr := &trial{root: dir, dir: t.TempDir()}
	f, err := tr.force(t.Context(), "p", []string{"p.go"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]result{}
	var reported []forced
	if err := f.try(t.Context(), variants(f.all), func(v forced, is result) {
		got[f.all[v.condition].name(v.to)] = is
		reported = append(reported, v)
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(variants(f.all), reported, cmp.AllowUnexported(forced{})); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]result{
		"p/p.go:Small: n < 10 = true":     {noticed: true},
		"p/p.go:Small: n < 10 = false":    {noticed: true},
		"p/p.go:Small: n == 1000 = true":  {noticed: true},
		"p/p.go:Small: n == 1000 = false": {unreached: true},
		"p/p.go:Guess: n > 5 = true":      {},
		"p/p.go:Guess: n > 5 = false":     {},
	}, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("what became of conditions (-want +got):\n%s", diff)
	}
}

func TestCount(t *testing.T) {
	reasons := map[string]string{"a": "it is faster", "b": "it is faster"}
	var got tally
	var out strings.Builder
	got.count("a", result{}, reasons, &out)
	got.count("b", result{noticed: true}, reasons, &out)
	got.count("c", result{noticed: true}, reasons, &out)
	got.count("d", result{}, reasons, &out)
	got.count("e", result{unreached: true}, reasons, &out)
	if want := (tally{noticed: 2, explained: 1, unexplained: 2}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	const want = "explained, and noticed all the same: b\nNOT NOTICED: d\nNOT TESTED: e\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

func TestParseExplained(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		want    map[string]string
		wantErr bool
	}{
		"lines":        {text: "# head\n\nf.go:f: a = true # it is faster\n", want: map[string]string{"f.go:f: a = true": "it is faster"}},
		"no reason":    {text: "f.go:f: a = true\n", wantErr: true},
		"an empty one": {text: "f.go:f: a = true # \n", wantErr: true},
		"there twice":  {text: "f: a = true # x\nf: a = true # y\n", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseExplained(tc.text)
			if (err != nil) != tc.wantErr {
				t.Fatalf("the error is %v, want one: %t", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("explanations (-want +got):\n%s", diff)
			}
		})
	}
}

// An explanation that outlives its condition would hide the next one of that name.
func TestExplanationsNameConditions(t *testing.T) {
	root, err := controlplane.RepositoryDir()
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := parseExplained(explainedText)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for name := range reasons {
		file, _, _ := strings.Cut(name, ":")
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		found, _, _, err := conditions(file, string(text), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range variants(found) {
			names[found[v.condition].name(v.to)] = true
		}
	}
	for name := range reasons {
		if !names[name] {
			t.Errorf("explained.txt: there is no condition %q", name)
		}
	}
}

func TestUnnamed(t *testing.T) {
	reasons := map[string]string{"d/f.go:f: a = true": "x", "d/e/f.go:f: a = true": "x"}
	if err := unnamed("d", map[string]bool{"d/f.go:f: a = true": true}, reasons); err != nil {
		t.Errorf("an explanation of a condition: %v", err)
	}
	if err := unnamed("d", nil, reasons); err == nil || !strings.Contains(err.Error(), "d/f.go:f: a = true") || strings.Contains(err.Error(), "d/e/") {
		t.Errorf("an explanation of none: the error is %v", err)
	}
}
