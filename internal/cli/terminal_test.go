package cli

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEscape(t *testing.T) {
	for name, tc := range map[string]struct{ in, want, wantLine string }{
		"nothing":           {"images/python:v1 äöü █ 日本", "images/python:v1 äöü █ 日本", "images/python:v1 äöü █ 日本"},
		"a title":           {"x\x1b]0;owned\x07", "x^[]0;owned^G", "x^[]0;owned^G"},
		"a clear screen":    {"\x1b[2J", "^[[2J", "^[[2J"},
		"in one character":  {"\u009b2J", `\u009b2J`, `\u009b2J`},
		"in one byte":       {"\x9b2J", "\ufffd2J", "\ufffd2J"},
		"an end of text":    {"\x00", "^@", "^@"},
		"over what is left": {"a\rb\bc\x7f", "a^Mb^Hc^?", "a^Mb^Hc^?"},
		"lines":             {"a\n\tb\v\fc", "a\n\tb^K^Lc", `a\n\tb^K^Lc`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{tc.want, tc.wantLine}, []string{Escape(tc.in), OneLine(tc.in)}); diff != "" {
				t.Errorf("escaped, and in one line (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestEscaping(t *testing.T) {
	var out bytes.Buffer
	w := Escaping(&out)
	if n, err := w.Write([]byte("a\x1b[2J\n")); n != 6 || err != nil {
		t.Errorf("wrote %d bytes, %v, want 6", n, err)
	}
	if diff := cmp.Diff("a^[[2J\n", out.String()); diff != "" {
		t.Errorf("written (-want,+got):\n%s", diff)
	}
	if Raw(w) != &out || Raw(&out) != &out {
		t.Error("the writer below is another one")
	}
	if _, err := Escaping(closed{}).Write([]byte("x")); err == nil || errors.Unwrap(err) != nil {
		t.Errorf("a write that failed ends with %v", err)
	}
}

type row struct{ text string }

// Colours are ours, and what is in a cell is not.
func TestATableEscapesItsCells(t *testing.T) {
	var out bytes.Buffer
	table := Table[row]{NoHeaders: true, Colour: true, Columns: []Column[row]{
		{Name: "A", Of: func(r row) Cell { return Cell{r.text, Bad} }}, Text("B", func(r row) string { return r.text }),
	}}
	if err := table.Write(Escaping(&out), []row{{"x\x1b[0m\ny"}, {"plain"}}); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[31mx^[[0m\\ny\x1b[0m   x^[[0m\\ny\n" + "\x1b[31mplain\x1b[0m       plain\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want,+got):\n%s", diff)
	}
}

func TestAScreenEscapesItsLines(t *testing.T) {
	var out bytes.Buffer
	if err := ScreenOf(&out, func() int { return 80 }).Show("newest: \x1b[2J\nready"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("newest: ^[[2J\\nready\n", out.String()); diff != "" {
		t.Errorf("shown (-want,+got):\n%s", diff)
	}
}

// What a program reads stays as it is.
func TestDocumentsAreNotEscaped(t *testing.T) {
	var out bytes.Buffer
	o := Output{Format: "jsonpath={.text}"}
	if err := o.PrintObject(Escaping(&out), "Row", map[string]any{"text": "a\x7fb"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a\x7fb", out.String()); diff != "" {
		t.Errorf("printed (-want,+got):\n%s", diff)
	}
	out.Reset()
	o.Format = "custom-columns=TEXT:.text"
	if err := o.PrintObject(Escaping(&out), "Row", map[string]any{"text": "a\x1bb"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("TEXT\na^[b\n", out.String()); diff != "" {
		t.Errorf("columns (-want,+got):\n%s", diff)
	}
}
