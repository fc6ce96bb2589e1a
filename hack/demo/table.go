package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/scenario"
)

// row is one side of the comparison.
type row struct {
	side string
	checker.Summary
	// ghosts is unknown when the probe could not be made.
	ghosts int
}

const unknown = -1

func (r row) stale() int { return r.Classes[checker.Stale] }

func (r row) p50() time.Duration { return time.Duration(r.ReadyP50) }

// writeTable writes the rows, and below them what has no column.
func writeTable(out io.Writer, rows ...row) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "\tCLAIMS\tSTALE\tWARM\tCOLD\tREADY\tp50\tp99\tGHOSTS\t")
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%-9s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t\n", r.side, r.Claims, r.stale(), r.Warm, r.Cold, r.Ready,
			seconds(r.p50()), seconds(time.Duration(r.ReadyP99)), count(r.ghosts))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	for _, r := range rows {
		if text := scenario.Besides(r.Summary); text != "" {
			_, _ = fmt.Fprintf(out, "%s, besides: %s\n", r.side, text)
		}
	}
	return nil
}

// seconds shows a time as people compare it.
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// count shows a number that may not be known.
func count(n int) string {
	if n == unknown {
		return "?"
	}
	return fmt.Sprint(n)
}
