package app

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/cli"
)

// printAuditReport writes the report in the format asked for.
func printAuditReport(out io.Writer, output *cli.Output, r *checker.Report) error {
	if output.Machine() {
		return output.PrintObject(out, "AuditReport", r)
	}
	if _, err := io.WriteString(out, auditTable(r, output)); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// auditColumn is one column of the table; those that are not always shown are for -o wide.
type auditColumn struct {
	name   string
	always bool
	value  func(s checker.Summary) string
}

func auditColumns() []auditColumn {
	class := func(c checker.Class) func(checker.Summary) string {
		return func(s checker.Summary) string { return fmt.Sprint(s.Classes[c]) }
	}
	count := func(f func(s checker.Summary) int) func(checker.Summary) string {
		return func(s checker.Summary) string { return fmt.Sprint(f(s)) }
	}
	return []auditColumn{
		{"NAMESPACE", true, func(s checker.Summary) string { return s.Namespace }},
		{"MODE", true, func(s checker.Summary) string { return auditOr(s.Mode, "<default>") }},
		{"CLAIMS", true, count(func(s checker.Summary) int { return s.Claims })},
		{"STALE", true, class(checker.Stale)},
		{"WORSE", true, count(func(s checker.Summary) int { return s.Bad() - s.Classes[checker.Stale] })},
		{"DEAD", false, class(checker.DeadMember)},
		{"KILLED", false, class(checker.Killed)},
		{"DUPLICATE", false, class(checker.Duplicate)},
		{"FOREIGN", false, class(checker.ForeignMember)},
		{"USED", false, class(checker.UsedMember)},
		{"RACED", true, class(checker.Raced)},
		{"TOLERATED", true, class(checker.Tolerated)},
		{"UNJUDGED", false, class(checker.Unjudged)},
		{"WARM", true, count(func(s checker.Summary) int { return s.Warm })},
		{"COLD", true, count(func(s checker.Summary) int { return s.Cold })},
		{"READY", true, count(func(s checker.Summary) int { return s.Ready })},
		{"P50", true, func(s checker.Summary) string { return auditSeconds(s.ReadyP50) }},
		{"P99", true, func(s checker.Summary) string { return auditSeconds(s.ReadyP99) }},
		{"NEW", false, count(func(s checker.Summary) int { return s.Births })},
		{"STALE-NEW", false, count(func(s checker.Summary) int { return s.StaleBirths })},
		{"DELETES", false, count(func(s checker.Summary) int { return s.MemberDeletes })},
		{"HIDDEN", false, count(func(s checker.Summary) int { return s.Hidden })},
		{"COLD-BESIDE-READY", false, count(func(s checker.Summary) int { return s.ColdBesideReady })},
	}
}

func auditOr(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func auditSeconds(s checker.Seconds) string {
	if s == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2fs", time.Duration(s).Seconds())
}

// auditTable is the report for people: a line per namespace, and what has to be known to read it.
func auditTable(r *checker.Report, output *cli.Output) string {
	wide := output.Format == cli.Wide
	var b strings.Builder
	fmt.Fprintf(&b, "Judged from %s to %s (from resourceVersion %s on).\n",
		r.Since.Local().Format(time.DateTime), r.Until.Local().Format(time.DateTime), r.SinceRV)
	w := printers.GetNewTabWriter(&b) // which cannot fail: a strings.Builder takes everything
	var names []string
	for _, c := range auditColumns() {
		if c.always || wide {
			names = append(names, c.name)
		}
	}
	if !output.NoHeaders {
		_, _ = fmt.Fprintln(w, strings.Join(names, "\t"))
	}
	for _, s := range r.Namespaces {
		var values []string
		for _, c := range auditColumns() {
			if c.always || wide {
				values = append(values, c.value(s))
			}
		}
		_, _ = fmt.Fprintln(w, strings.Join(values, "\t"))
	}
	_ = w.Flush()
	for _, note := range auditNotes(r) {
		b.WriteString(note + "\n")
	}
	return b.String()
}

// auditNotes says what limits the judgement, and what the table does not show.
func auditNotes(r *checker.Report) []string {
	var notes []string
	for _, l := range r.EventGaps {
		notes = append(notes, fmt.Sprintf("Events of %s between resourceVersion %s and %s are lost: for that span, no findings prove nothing.",
			l.Resource, l.After, l.Until))
	}
	unjudged, beside, bound := 0, 0, 0
	for _, s := range r.Namespaces {
		unjudged += s.Classes[checker.Unjudged]
		beside += s.ColdBesideReady
		bound += s.BoundBefore
	}
	if unjudged > 0 {
		notes = append(notes, auditCount(unjudged, "bind")+" could not be judged.")
	}
	if r.Unsettled > 0 {
		notes = append(notes, auditCount(r.Unsettled, "bind")+" judged before all events up to then had arrived.")
	}
	if beside > 0 {
		notes = append(notes, auditCount(beside, "claim")+" started cold beside a member that had long been ready: pools may hold ghosts.")
	}
	if bound > 0 {
		notes = append(notes, auditBoundBefore(bound))
	}
	return append(notes, r.Missing...)
}

func auditCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
