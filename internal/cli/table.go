package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// Tone is how urgent a cell is. It only ever adds colour to words that say the
// same.
type Tone int

const (
	// Plain is what needs no second look.
	Plain Tone = iota
	// Good is what a command was asked to wait for.
	Good
	// Busy is under way.
	Busy
	// Bad needs somebody to act.
	Bad
)

var tones = map[Tone]string{Good: "\x1b[32m", Busy: "\x1b[33m", Bad: "\x1b[31m"}

const reset = "\x1b[0m"

// Cell is one value of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Column is one column of a table of T.
type Column[T any] struct {
	Name string
	// Wide columns are shown by -o wide only.
	Wide bool
	Of   func(T) Cell
}

// Text returns a column without colour.
func Text[T any](name string, of func(T) string) Column[T] {
	return Column[T]{Name: name, Of: func(v T) Cell { return Cell{Text: of(v)} }}
}

// Number returns a column of numbers.
func Number[T any](name string, of func(T) int) Column[T] {
	return Text(name, func(v T) string { return fmt.Sprint(of(v)) })
}

// OnlyWide makes a column one for -o wide.
func OnlyWide[T any](c Column[T]) Column[T] {
	c.Wide = true
	return c
}

// Table lays out rows as kubectl does. The zero value of its flags prints
// headers and no colour.
type Table[T any] struct {
	Columns []Column[T]
	Wide    bool
	// NoHeaders leaves the first line out.
	NoHeaders bool
	Colour    bool

	widths []int
}

// gap is between two columns.
const gap = 3

// Write writes the rows. Widths only grow from call to call, so that the lines
// of a watch stay below one another; headers are written once.
func (t *Table[T]) Write(out io.Writer, rows []T) error {
	var columns []Column[T]
	for _, c := range t.Columns {
		if !c.Wide || t.Wide {
			columns = append(columns, c)
		}
	}
	lines := make([][]Cell, 0, len(rows)+1)
	if !t.NoHeaders && t.widths == nil {
		var header []Cell
		for _, c := range columns {
			header = append(header, Cell{Text: c.Name})
		}
		lines = append(lines, header)
	}
	for _, row := range rows {
		var line []Cell
		for _, c := range columns {
			cell := c.Of(row)
			cell.Text = OneLine(cell.Text)
			line = append(line, cell)
		}
		lines = append(lines, line)
	}
	if t.widths == nil {
		t.widths = make([]int, len(columns))
	}
	var b strings.Builder
	for _, line := range lines {
		for i, cell := range line {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell.Text))
		}
	}
	for _, line := range lines {
		t.line(&b, line)
	}
	if _, err := io.WriteString(Raw(out), b.String()); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func (t *Table[T]) line(b *strings.Builder, line []Cell) {
	for i, cell := range line {
		b.WriteString(Paint(cell, t.Colour))
		if i < len(line)-1 {
			b.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell.Text)+gap))
		}
	}
	b.WriteByte('\n')
}

// Paint returns the words of a cell, in colour if that is wanted.
func Paint(c Cell, colour bool) string {
	if !colour || tones[c.Tone] == "" {
		return c.Text
	}
	return tones[c.Tone] + c.Text + reset
}

// Colours reports whether out is a terminal that shows colours. NO_COLOR turns
// them off (https://no-color.org).
func Colours(out io.Writer) bool {
	file, ok := Raw(out).(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
