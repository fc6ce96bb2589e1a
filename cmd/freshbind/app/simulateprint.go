package app

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/freshbind/freshbind/internal/cli"
)

func (o *simulateOptions) print(results []simulated) error {
	if o.output.Structured() {
		return o.output.PrintObject(o.streams.Out, "SimulationList", map[string]any{"items": results})
	}
	var b strings.Builder
	for _, s := range results {
		s.write(&b)
	}
	if _, err := io.WriteString(o.streams.Out, b.String()); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// write writes one object for people.
func (s simulated) write(b *strings.Builder) {
	name := s.Name
	if name == "" {
		name = "<generated>"
	}
	if s.Namespace != "" {
		name = s.Namespace + "/" + name
	}
	fmt.Fprintf(b, "%s %s%s: %s\n", s.Kind, name, s.revisions(), cli.OneLine(s.Says))
	for _, refused := range s.Refused {
		fmt.Fprintf(b, "  %s\n", cli.OneLine(refused))
	}
	for _, warning := range s.Warnings {
		if warning != s.Says {
			fmt.Fprintf(b, "  %s\n", cli.OneLine(warning))
		}
	}
	if s.Difference != "" {
		fmt.Fprintf(b, "  %s\n", cli.OneLine(s.Difference))
	}
	if len(s.Pools) > 0 {
		s.writePools(b)
	}
}

func (s simulated) revisions() string {
	switch {
	case s.After == "":
		return ""
	case s.Before == "":
		return " (not stored -> " + s.After + ")"
	case s.Before == s.After:
		return " (" + s.After + ")"
	}
	return " (" + s.Before + " -> " + s.After + ")"
}

func (s simulated) writePools(b *strings.Builder) {
	w := printers.GetNewTabWriter(b) // which cannot fail: a strings.Builder takes everything
	_, _ = fmt.Fprintln(w, "  POOL\tMODE\tSTRATEGY\tIDLE\tBECOME-STALE\tBECOME-FRESH\tSTAY-STALE\tSTALE-MEMBERS")
	for _, p := range s.Pools {
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n",
			p.Name, p.Mode, p.Strategy, p.Idle, p.BecomeStale, p.BecomeFresh, p.StayStale, p.StaleAre.Text(p.BecomeStale+p.StayStale))
	}
	_ = w.Flush()
}
