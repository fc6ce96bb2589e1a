package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Output says how results are printed.
type Output struct {
	Format    string
	NoHeaders bool
	// Colour is whether the writer shows colours.
	Colour bool
}

// The values of --output beside the table.
const (
	JSON = "json"
	YAML = "yaml"
	Wide = "wide"
	Name = "name"
)

var formats = []string{JSON, YAML, Wide, Name}

// AddFlags adds the flags to fs.
func (o *Output) AddFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.Format, "output", "o", o.Format, "Output format: json, yaml, wide or name; a table without it.")
	fs.BoolVar(&o.NoHeaders, "no-headers", o.NoHeaders, "Print no headers.")
}

// Validate says what is wrong with the flags.
func (o *Output) Validate() error {
	if o.Format != "" && !slices.Contains(formats, o.Format) {
		return fmt.Errorf("-o %q: accepted are %s", o.Format, strings.Join(formats, ", "))
	}
	return nil
}

// Machine reports whether a program reads the output.
func (o *Output) Machine() bool { return o.Format == JSON || o.Format == YAML || o.Format == Name }

// Printer prints rows in the format asked for. It keeps what a watch needs from
// one call to the next.
type Printer[T any] struct {
	output Output
	table  Table[T]
	name   func(T) string
	calls  int
}

// NewPrinter returns one that knows rows by their columns and by name.
func NewPrinter[T any](o Output, name func(T) string, columns []Column[T]) *Printer[T] {
	return &Printer[T]{output: o, name: name, table: Table[T]{
		Columns: columns, Wide: o.Format == Wide, NoHeaders: o.NoHeaders, Colour: o.Colour,
	}}
}

// Print prints the rows as a list.
func (p *Printer[T]) Print(out io.Writer, rows []T) error {
	if rows == nil {
		rows = []T{}
	}
	switch p.output.Format {
	case JSON, YAML:
		return p.encode(out, map[string]any{"items": rows})
	case Name:
		for _, row := range rows {
			if _, err := fmt.Fprintln(out, p.name(row)); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
		}
		return nil
	}
	if len(rows) == 0 {
		return nil
	}
	return p.table.Write(out, rows)
}

// PrintEach prints each row as a document of its own, for a watch.
func (p *Printer[T]) PrintEach(out io.Writer, rows []T) error {
	if p.output.Format != JSON && p.output.Format != YAML {
		return p.Print(out, rows)
	}
	for _, row := range rows {
		if err := p.encode(out, row); err != nil {
			return err
		}
	}
	return nil
}

func (p *Printer[T]) encode(out io.Writer, v any) error {
	raw, err := IndentedJSON(v)
	if p.output.Format == YAML {
		raw, err = yaml.Marshal(v)
		if p.calls > 0 {
			raw = append([]byte("---\n"), raw...)
		}
	}
	p.calls++
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	if _, err := out.Write(raw); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// IndentedJSON is for people too: <, > and & stay as they are.
func IndentedJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return b.Bytes(), nil
}
