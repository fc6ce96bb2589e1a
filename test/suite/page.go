package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

const pageHead = "# What was shown, by which test\n\n" +
	"Made by `make coverage` from the last results of `make test`, `make test-rest` and [`make matrix`](matrix.md); not edited by hand.\n" +
	"[CONTRIBUTING](../CONTRIBUTING.md) explains the promises. Unit tests and benchmarks are not in it.\n"

// writePage writes a page of Markdown about the results in files: of each promise the
// tests that show it, with which versions they ran, and how they ended.
func writePage(out io.Writer, rows []row, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("no files with results: run make test, make test-rest, or both, before make coverage")
	}
	found := map[rowID][]result{}
	for _, path := range files {
		rs := results{}
		if err := rs.readFile(path); err != nil {
			return err
		}
		for _, r := range rows {
			found[r.id()] = latest(found[r.id()], rs.of(r))
		}
	}
	// make matrix says of its own releases what was run.
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.set == releases && len(found[r.id()]) == 0 })
	_, err := io.WriteString(out, pageHead+byRelease(rows, found)+byKubernetes(rows, found)+details(rows, found))
	return err
}

func (rs results) readFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open results: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := rs.read(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// rowID tells rows apart.
type rowID struct{ pkg, test string }

func (r row) id() rowID { return rowID{r.pkg, r.test} }

// byRelease counts, of each promise and each release, the tests that passed on the
// newest Kubernetes.
func byRelease(rows []row, found map[rowID][]result) string {
	releases := values(found, func(r result) string { return r.release })
	kubernetes := values(found, func(r result) string { return r.kubernetes })
	newest := ""
	if len(kubernetes) > 0 {
		newest = kubernetes[len(kubernetes)-1]
	}
	// Tests that run without agent-sandbox, or beside another system, have a column of
	// their own.
	heads := slices.Clone(releases)
	for i, r := range heads {
		heads[i] = cmp.Or(r, "without agent-sandbox")
	}
	return "\nOn Kubernetes " + newest + ", with each release of agent-sandbox, the tests that passed:\n\n" +
		summary(rows, found, heads, func(column int, r result) bool {
			return r.release == releases[column] && (r.kubernetes == newest || r.kubernetes == "")
		})
}

// byKubernetes counts those that passed on each Kubernetes, with any release.
func byKubernetes(rows []row, found map[rowID][]result) string {
	versions := slices.DeleteFunc(values(found, func(r result) string { return r.kubernetes }), func(v string) bool { return v == "" })
	return "\nOn each Kubernetes, with any release:\n\n" +
		summary(rows, found, versions, func(column int, r result) bool { return r.kubernetes == versions[column] })
}

// values are the versions that results have, the oldest first.
func values(found map[rowID][]result, of func(result) string) []string {
	var all []string
	for _, rs := range found {
		for _, r := range rs {
			if v := of(r); !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	slices.SortFunc(all, compareReleases)
	return all
}

// summary is a table of promises, and of columns that count those tests of which
// counts says that they belong there.
func summary(rows []row, found map[rowID][]result, heads []string, counts func(column int, r result) bool) string {
	var b strings.Builder
	b.WriteString("| Promise | " + strings.Join(heads, " | ") + " |\n|---" + strings.Repeat("|---", len(heads)) + "|\n")
	for _, p := range properties {
		fmt.Fprintf(&b, "| [%s](#%s): %s |", p.name, p.name, p.means)
		for column := range heads {
			b.WriteString(" " + tally(rows, found, p.name, func(r result) bool { return counts(column, r) }) + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func tally(rows []row, found map[rowID][]result, property string, counts func(result) bool) string {
	passed, all := 0, 0
	for _, r := range rows {
		if !slices.Contains(r.shows, property) {
			continue
		}
		for _, one := range found[r.id()] {
			if counts(one) && one.outcome != "skip" {
				all++
				if one.outcome == "pass" {
					passed++
				}
			}
		}
	}
	switch {
	case all == 0:
		return "–"
	case passed < all:
		return fmt.Sprintf("**%d of %d**", passed, all)
	}
	return fmt.Sprintf("%d of %d", passed, all)
}

func details(rows []row, found map[rowID][]result) string {
	var b strings.Builder
	for _, p := range properties {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| Test | Kubernetes | agent-sandbox | Result | Seconds | Last run |\n|---|---|---|---|---|---|\n", p.name, sentence(p.means))
		for _, r := range rows {
			if !slices.Contains(r.shows, p.name) {
				continue
			}
			if len(found[r.id()]) == 0 {
				fmt.Fprintf(&b, "| `test/%s` %s | | | not run | | |\n", r.pkg, r.test)
			}
			for _, one := range found[r.id()] {
				b.WriteString(line(one))
			}
		}
	}
	return b.String()
}

func line(r result) string {
	outcome, ended := map[string]string{"pass": "passed", "fail": "**failed**", "skip": "skipped"}[r.outcome], "**did not end** | | |"
	if outcome != "" {
		ended = fmt.Sprintf("%s | %.0f | %s |", outcome, r.took.Seconds(), r.last.UTC().Format(time.DateOnly))
	}
	return fmt.Sprintf("| `test/%s` %s | %s | %s | %s\n", r.pkg, r.test, cmp.Or(r.kubernetes, "–"), cmp.Or(r.release, "–"), ended)
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
