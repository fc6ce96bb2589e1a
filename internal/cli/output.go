package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Output says how results are printed.
type Output struct {
	Format    string
	NoHeaders bool
	// Tables, Names and Pages are whether the command knows wide tables, names, and pages for browsers.
	Tables, Names, Pages bool
	// Colour is whether the writer shows colours.
	Colour bool
}

// The values of --output beside the table.
const (
	JSON = "json"
	YAML = "yaml"
	Wide = "wide"
	Name = "name"
	HTML = "html"
)

// formats are those that the command knows.
func (o *Output) formats() []string {
	out := []string{JSON, YAML}
	if o.Tables {
		out = append(out, Wide)
	}
	if o.Names {
		out = append(out, Name)
	}
	if o.Pages {
		out = append(out, HTML)
	}
	return append(out, templated...)
}

// AddFlags adds the flags, and completes their values.
func (o *Output) AddFlags(cmd *cobra.Command) {
	without := "text"
	if o.Tables {
		without = "a table"
		cmd.Flags().BoolVar(&o.NoHeaders, "no-headers", o.NoHeaders, "Print no headers.")
	}
	cmd.Flags().StringVarP(&o.Format, "output", "o", o.Format,
		"Output format: "+strings.Join(o.formats(), ", ")+"; "+without+" by default.")
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return o.formats(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// Validate says what is wrong with the flags.
func (o *Output) Validate() error {
	if o.Format == "" || o.Format == Wide && o.Tables || o.Format == Name && o.Names || o.Format == HTML && o.Pages {
		return nil
	}
	encode, err := encoder(o.Format, o.NoHeaders)
	if err == nil && encode == nil {
		err = fmt.Errorf("-o %q: accepted are %s", o.Format, strings.Join(o.formats(), ", "))
	}
	return err
}

// Machine reports whether a program reads the output.
func (o *Output) Machine() bool { return o.Format != "" && o.Format != Wide }

// Structured reports whether objects are printed, and not a table, words or names.
func (o *Output) Structured() bool { return o.Machine() && o.Format != Name }

// PrintObject prints what a program reads.
func (o *Output) PrintObject(out io.Writer, kind string, v any) error {
	encode, err := encoder(o.Format, o.NoHeaders)
	if err != nil {
		return err
	}
	doc, err := Document(kind, v)
	if err != nil {
		return err
	}
	return encode(Raw(out), doc)
}

// Printer prints rows in the format asked for. It keeps what a watch needs from
// one call to the next.
type Printer[T any] struct {
	output Output
	table  Table[T]
	kind   string
	name   func(T) string
	calls  int
}

// NewPrinter returns one that knows rows by their kind, their columns and by name.
func NewPrinter[T any](o Output, kind string, name func(T) string, columns []Column[T]) *Printer[T] {
	return &Printer[T]{output: o, kind: kind, name: name, table: Table[T]{
		Columns: columns, Wide: o.Format == Wide, NoHeaders: o.NoHeaders, Colour: o.Colour,
	}}
}

// Print prints the rows as a list.
func (p *Printer[T]) Print(out io.Writer, rows []T) error {
	if !p.output.Structured() {
		return p.printPlain(out, rows)
	}
	encode, err := encoder(p.output.Format, p.output.NoHeaders)
	if err != nil {
		return err
	}
	items := make([]any, 0, len(rows))
	for _, row := range rows {
		doc, err := Document(p.kind, row)
		if err != nil {
			return err
		}
		items = append(items, doc.Object)
	}
	return encode(Raw(out), List(items))
}

// PrintEach prints each row as an object of its own: for a watch, and for what
// was asked for by name.
func (p *Printer[T]) PrintEach(out io.Writer, rows []T) error {
	if !p.output.Structured() {
		return p.printPlain(out, rows)
	}
	for _, row := range rows {
		if p.calls > 0 && p.output.Format == YAML {
			if _, err := io.WriteString(Raw(out), "---\n"); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
		}
		output := p.output
		output.NoHeaders = output.NoHeaders || p.calls > 0
		p.calls++
		if err := output.PrintObject(out, p.kind, row); err != nil {
			return err
		}
	}
	return nil
}

func (p *Printer[T]) printPlain(out io.Writer, rows []T) error {
	if p.output.Format == Name {
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
