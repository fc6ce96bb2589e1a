package main

import "slices"

// printing is what keeps the terminal of whoever runs a command from tenants.
var printing = slices.Concat(at("internal/cli/terminal.go", []mutant{
	{check: "terminal: control characters are escaped", old: `unicode.IsControl(r) && which(r)`, broken: `false`, test: "TestEscape/a_title"},
	{check: "terminal: those of single bytes are", old: `text = strings.ToValidUTF8(text, string(unicode.ReplacementChar))`, broken: ``, test: "TestEscape/in_one_byte"},
	{check: "terminal: what has to stay in its line does", old: `escape(text, func(rune) bool { return true })`, broken: `Escape(text)`, test: "TestEscape/lines"},
}), at("internal/cli/table.go", []mutant{
	{check: "terminal: cells of tables are escaped", old: `cell.Text = OneLine(cell.Text)`, broken: ``, test: "TestATableEscapesItsCells"},
}), at("internal/cli/screen.go", []mutant{
	{check: "terminal: lines that change in place are escaped", old: `line = OneLine(line)`, broken: ``, test: "TestAScreenEscapesItsLines"},
}), at("internal/cli/rollout.go", []mutant{
	{check: "a rollout that failed promises no older members that are refused", old: `if freshness.ServesStale(p.Strategy, p.Admit == string(freshness.AdmitAny)) {`, broken: `if true {`, test: "TestOutcome/failed_under_Recreate"},
}), at("cmd/freshbind/app/root.go", []mutant{
	{check: "terminal: errors are escaped", old: `fmt.Fprintf(cli.Escaping(errOut), `, broken: `fmt.Fprintf(errOut, `, test: "TestATerminalObeysNothingThatIsPrinted/errors"},
	{check: "terminal: output is escaped", old: `streams.Out, streams.ErrOut = cli.Escaping(streams.Out), cli.Escaping(streams.ErrOut)`, broken: ``, test: "TestATerminalObeysNothingThatIsPrinted/output"},
}), at("cmd/freshbind/app/rolloutstatus.go", []mutant{
	{check: "terminal: an outcome is one line", old: `o.Text = cli.OneLine(o.Text)`, broken: ``, test: "TestRolloutStatus/a_message_that_tells_another_story"},
}), at("cmd/freshbind/app/auditwatch.go", []mutant{
	{check: "terminal: a bind that is watched is one line", old: `fmt.Fprintln(t.out, cli.OneLine(b.String()))`, broken: `fmt.Fprintln(t.out, b.String())`, test: "TestAuditPrintsABindInOneLine"},
}), at("cmd/freshbind/app/auditcheck.go", []mutant{
	{check: "terminal: a bind of a log is one line", old: `fmt.Fprintln(talk, cli.OneLine(b.String()))`, broken: `fmt.Fprintln(talk, b.String())`, test: "TestAuditPrintsABindInOneLine"},
}))
