package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/freshbind/freshbind/hack/markdown"
)

// row is one figure beside what is aimed at.
type row struct {
	what, unit string
	// aim is the most that the figure may be; 0 for none.
	aim float64
	// figures are all that were measured. The median counts.
	figures []float64
	// worst: the greatest counts, not the median.
	worst bool
}

// figure is the one that counts. The median of an even number is the upper one
// of the two.
func (r row) figure() float64 {
	sorted := slices.Sorted(slices.Values(r.figures))
	if r.worst {
		return sorted[len(sorted)-1]
	}
	return sorted[len(sorted)/2]
}

// met reports whether the aim is; without an aim it is.
func (r row) met() bool { return r.aim == 0 || len(r.figures) > 0 && r.figure() <= r.aim }

func (r row) fault() string {
	if len(r.figures) == 0 {
		return fmt.Sprintf("%s: nothing was measured", r.what)
	}
	return fmt.Sprintf("%s: %.2f%s, more than %g", r.what, r.figure(), blank(r.unit), r.aim)
}

// missed says which aims were not met.
func missed(rows []row) []string {
	var lines []string
	for _, r := range rows {
		if !r.met() {
			lines = append(lines, r.fault())
		}
	}
	return lines
}

var tableHead = []string{"WHAT", "AIM", "FIGURE", "SPREAD", "MET"}

// cells are those of a row, for people.
func (r row) cells() []string {
	aim, figure, spread, met := "-", "-", "-", "yes"
	if r.aim != 0 {
		aim = fmt.Sprintf("at most %g%s", r.aim, blank(r.unit))
	}
	if len(r.figures) > 0 {
		figure = fmt.Sprintf("%.2f%s", r.figure(), blank(r.unit))
		spread = fmt.Sprintf("%.2f to %.2f", slices.Min(r.figures), slices.Max(r.figures))
	}
	switch {
	case r.aim == 0:
		met = "-"
	case !r.met():
		met = "no"
	}
	return []string{r.what, aim, figure, spread, met}
}

// printTable prints figures beside aims.
func printTable(out io.Writer, rows []row) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.Join(tableHead, "\t"))
	for _, r := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(r.cells(), "\t"))
	}
	_ = w.Flush()
}

// pageTable is the same table for a page.
func pageTable(rows []row) string {
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, r.cells())
	}
	return markdown.Table([]string{"what", "aim", "figure", "spread", "met"}, cells)
}

func blank(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}
