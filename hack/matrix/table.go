package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/freshbind/freshbind/hack/markdown"
)

// results are what was run.
type results struct {
	Kubernetes []kubernetesResult
	Releases   []releaseResult
}

// kubernetesResult is one version of Kubernetes.
type kubernetesResult struct {
	Version string
	features
	tests map[string]outcome
}

// releaseResult is one release of agent-sandbox.
type releaseResult struct {
	Version, Kubernetes string
	guard               outcome
}

// testColumns are where the tests are counted that are run on each Kubernetes.
var testColumns = []string{guardPackage, policies, "chart", "scheduler"}

var kubernetesHead = []string{
	"Kubernetes", "MutatingAdmissionPolicy", "matchConditions", "WatchList", "selectableFields", "extender",
	"guard", "policies", "chart", "scheduler",
}

var releaseHead = []string{"agent-sandbox", "on Kubernetes", "guard"}

func (r kubernetesResult) cells() []string {
	yes := func(is bool) string {
		if is {
			return "yes"
		}
		return "no"
	}
	// What kube-scheduler makes of an extender shows where it has one.
	scheduler := r.tests["scheduler"]
	cells := []string{
		r.Version, cmp.Or(r.mutatingPolicies, "no"), yes(r.matchConditions), yes(r.watchList), yes(r.selectableFields),
		yes(scheduler.passed > 0),
	}
	for _, column := range testColumns {
		cells = append(cells, r.tests[column].String())
	}
	return cells
}

func (r releaseResult) cells() []string { return []string{r.Version, r.Kubernetes, r.guard.String()} }

// fault says in which of them a test failed, or none was run.
func (r results) fault() error {
	var bad []string
	add := func(name, what string, o outcome) {
		if o.failed > 0 || o.passed == 0 {
			bad = append(bad, fmt.Sprintf("%s, %s: %s", name, what, o))
		}
	}
	for _, k := range r.Kubernetes {
		for _, column := range testColumns {
			add("Kubernetes "+k.Version, column, k.tests[column])
		}
	}
	for _, release := range r.Releases {
		add("agent-sandbox "+release.Version, guardPackage, release.guard)
	}
	if len(bad) > 0 {
		return errors.New(strings.Join(bad, "; "))
	}
	return nil
}

func (r results) kubernetesRows() [][]string {
	var rows [][]string
	for _, k := range r.Kubernetes {
		rows = append(rows, k.cells())
	}
	return rows
}

func (r results) releaseRows() [][]string {
	var rows [][]string
	for _, release := range r.Releases {
		rows = append(rows, release.cells())
	}
	return rows
}

// tables is what people see at the end.
func (r results) tables() string {
	var out strings.Builder
	if rows := r.kubernetesRows(); len(rows) > 0 {
		out.WriteString(markdown.Table(kubernetesHead, rows))
	}
	if rows := r.releaseRows(); len(rows) > 0 {
		out.WriteString("\n" + markdown.Table(releaseHead, rows))
	}
	return out.String()
}

// withResults puts what was run into a page that has both tables, in the place of
// what stands there of the same versions. Other rows stay as they are.
func withResults(page string, r results) (string, error) {
	for _, t := range []struct {
		head []string
		rows [][]string
	}{{kubernetesHead, r.kubernetesRows()}, {releaseHead, r.releaseRows()}} {
		begin, end, err := findTable(page, t.head)
		if err != nil {
			return "", err
		}
		rows := t.rows
		for _, old := range parseRows(page[begin:end]) {
			if !slices.ContainsFunc(rows, func(row []string) bool { return row[0] == old[0] }) {
				rows = append(rows, old)
			}
		}
		slices.SortFunc(rows, func(a, b []string) int { return compareVersions(a[0], b[0]) })
		page = page[:begin] + markdown.Table(t.head, rows) + page[end:]
	}
	return page, nil
}

// findTable returns where a table of Markdown is: from its head to its last line.
func findTable(page string, head []string) (begin, end int, err error) {
	at := 0
	found := false
	for line := range strings.Lines(page) {
		isRow := strings.HasPrefix(line, "|")
		switch {
		case !found && isRow && slices.Equal(cellsOf(line), head):
			begin, found = at, true
		case found && !isRow:
			return begin, at, nil
		}
		at += len(line)
	}
	if !found {
		return 0, 0, fmt.Errorf("no table with the columns %s", strings.Join(head, ", "))
	}
	return begin, at, nil
}

// parseRows are the rows below a table's head.
func parseRows(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		rows = append(rows, cellsOf(line))
	}
	// The head, and the line below it.
	return rows[min(2, len(rows)):]
}

func cellsOf(line string) []string {
	cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// compareVersions compares v1.9.0 and v1.10.0 as people do.
func compareVersions(a, b string) int {
	return slices.Compare(numbers(a), numbers(b))
}

func numbers(version string) []int {
	var all []int
	for part := range strings.SplitSeq(strings.TrimPrefix(version, "v"), ".") {
		n := 0
		// What is no number counts as 0: the lists here have none.
		_, _ = fmt.Sscan(part, &n)
		all = append(all, n)
	}
	return all
}
