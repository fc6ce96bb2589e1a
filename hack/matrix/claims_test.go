package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/freshbind/freshbind/test/controlplane"
)

// pageRows returns the rows of a table of docs/matrix.md.
func pageRows(t *testing.T, head []string) [][]string {
	t.Helper()
	page := repositoryFile(t, "docs/matrix.md")
	begin, end, err := findTable(page, head)
	if err != nil {
		t.Fatal(err)
	}
	return parseRows(page[begin:end])
}

func repositoryFile(t *testing.T, path string) string {
	t.Helper()
	root, err := controlplane.RepositoryDir()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What chart and documentation say is what the page shows to have been run, and to
// have passed.
func TestWhatIsClaimedWasRun(t *testing.T) {
	rows := pageRows(t, kubernetesHead)
	if len(rows) == 0 {
		t.Fatal("no Kubernetes was run")
	}
	for _, row := range rows {
		for i, cell := range row {
			if tested := i >= len(kubernetesHead)-len(testColumns); tested && (!strings.Contains(cell, "passed") || strings.Contains(cell, "FAILED")) {
				t.Errorf("Kubernetes %s, %s: %s", row[0], kubernetesHead[i], cell)
			}
		}
	}
	for _, version := range kubernetesVersions {
		if !slices.ContainsFunc(rows, func(row []string) bool { return row[0] == version }) {
			t.Errorf("docs/matrix.md: no row for Kubernetes %s, which the chart admits", version)
		}
	}
	minor := func(version string) string { return version[1:strings.LastIndex(version, ".")] }
	oldest := minor(rows[0][0])
	for path, says := range map[string]string{
		"charts/freshbind/Chart.yaml": `kubeVersion: ">=` + oldest + `.0-0"`,
		"README.md":                   "You need Kubernetes " + oldest + " or newer",
		"docs/install.md":             "You need Kubernetes " + oldest + " or newer",
	} {
		if !strings.Contains(strings.ReplaceAll(repositoryFile(t, path), "\n", " "), says) {
			t.Errorf("%s does not say %q, as docs/matrix.md does", path, says)
		}
	}
	for _, row := range pageRows(t, releaseHead) {
		if guard := row[len(row)-1]; !strings.Contains(guard, "passed") || strings.Contains(guard, "FAILED") {
			t.Errorf("agent-sandbox %s: %s", row[0], guard)
		}
		if !strings.Contains(repositoryFile(t, "docs/platforms.md"), row[0]) {
			t.Errorf("docs/platforms.md does not name agent-sandbox %s", row[0])
		}
	}
}
