package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var metricName = regexp.MustCompile(`Name: +"(freshbind_[a-z_]+)"|describe\("(freshbind_[a-z_]+)"`)

// Every metric is explained on a page.
func TestMetricsAreDocumented(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented strings.Builder
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		documented.Write(text)
	}
	found := 0
	for _, dir := range []string{"cmd", "internal", "webhooks", "controllers", "scheduler"} {
		err := filepath.WalkDir(filepath.Join(repository, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range metricName.FindAllStringSubmatch(string(text), -1) {
				found++
				if name := m[1] + m[2]; !regexp.MustCompile(name + `\b`).MatchString(documented.String()) {
					t.Errorf("%s: %s is on no page of docs", path, name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Error("no metric was found")
	}
}
