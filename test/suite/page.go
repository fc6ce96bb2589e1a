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
	"Made by `make coverage` from the results of `make test` and `make test-rest`; not edited by hand.\n" +
	"[CONTRIBUTING](../CONTRIBUTING.md) explains the promises. Unit tests, benchmarks and\n" +
	"[`make matrix`](matrix.md) are not in it.\n"

// writePage writes a page of Markdown about the results in files: of each promise the
// tests that show it, with which versions they ran, and how they ended.
func writePage(out io.Writer, rows []row, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("no files with results: run make test, make test-rest, or both, before make coverage")
	}
	rs := results{}
	for _, path := range files {
		if err := rs.readFile(path); err != nil {
			return err
		}
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.set == releases })
	found := map[rowID][]result{}
	for _, r := range rows {
		found[r.id()] = rs.of(r)
	}
	_, err := io.WriteString(out, pageHead+summary(rows, found)+details(rows, found))
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

// summary counts, of each promise and each release, the tests that passed.
func summary(rows []row, found map[rowID][]result) string {
	var releases []string
	for _, rs := range found {
		for _, r := range rs {
			if !slices.Contains(releases, r.release) {
				releases = append(releases, r.release)
			}
		}
	}
	slices.SortFunc(releases, compareReleases)
	var b strings.Builder
	b.WriteString("\n| Promise | " + strings.Join(columns(releases), " | ") + " |\n|---" + strings.Repeat("|---", len(releases)) + "|\n")
	for _, p := range properties {
		fmt.Fprintf(&b, "| [%s](#%s): %s |", p.name, p.name, p.means)
		for _, release := range releases {
			b.WriteString(" " + tally(rows, found, p.name, release) + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// columns are the heads of the releases; tests that run without agent-sandbox, or beside
// another system, have one of their own.
func columns(releases []string) []string {
	heads := slices.Clone(releases)
	for i, r := range heads {
		heads[i] = cmp.Or(r, "without agent-sandbox")
	}
	return heads
}

func tally(rows []row, found map[rowID][]result, property, release string) string {
	passed, all := 0, 0
	for _, r := range rows {
		if !slices.Contains(r.shows, property) {
			continue
		}
		for _, one := range found[r.id()] {
			if one.release == release && one.outcome != "skip" {
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
		ended = fmt.Sprintf("%s | %.0f | %s |", outcome, r.took.Seconds(), r.ended.UTC().Format(time.DateOnly))
	}
	return fmt.Sprintf("| `test/%s` %s | %s | %s | %s\n", r.pkg, r.test, cmp.Or(r.kubernetes, "–"), cmp.Or(r.release, "–"), ended)
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
