package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every link within the repository leads to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "charts/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) == 0 {
		t.Fatal("no page was found")
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, why := range brokenLinks(filepath.Dir(page), string(text)) {
			t.Errorf("%s: %s", page, why)
		}
	}
}

func TestBrokenLinks(t *testing.T) {
	dir := t.TempDir()
	page := "# The page\n\n## `freshbind` doctor, again\n\n```\n## no heading\n```\n## Twice\n## Twice\n"
	if err := os.WriteFile(filepath.Join(dir, "page.md"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"a page":            {"[a](page.md)", nil},
		"a heading":         {"[a](page.md#freshbind-doctor-again)", nil},
		"a second heading":  {"[a](page.md#twice-1)", nil},
		"its own heading":   {"# Here\n[a](#here)", nil},
		"another site":      {"[a](https://example.com/nothing.md#nothing)", nil},
		"in code":           {"`[a](nothing.md)`\n```\n[a](nothing.md)\n```", nil},
		"no page":           {"[a](nothing.md)", []string{"nothing.md does not exist"}},
		"no heading":        {"[a](page.md#no-heading)", []string{"page.md has no heading #no-heading"}},
		"no heading of its": {"[a](#there)", []string{"has no heading #there"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, brokenLinks(dir, tc.text)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

var (
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// brokenLinks says of each link of a page in dir why it leads nowhere.
func brokenLinks(dir, text string) []string {
	var out []string
	prose := codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), "")
	for _, found := range link.FindAllStringSubmatch(prose, -1) {
		path, anchor, _ := strings.Cut(found[1], "#")
		if strings.Contains(path, "://") {
			continue
		}
		target := text
		if path != "" {
			raw, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				out = append(out, path+" does not exist")
				continue
			}
			target = string(raw)
		}
		if anchor != "" && !anchors(target)[anchor] {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s has no heading #%s", path, anchor)))
		}
	}
	return out
}

// anchors are those that GitHub gives the headings of a page.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		plain := notInAnchor.ReplaceAllString(strings.ToLower(found[1]), "")
		anchor := strings.ReplaceAll(plain, " ", "-")
		for n, first := 1, anchor; out[anchor]; n++ {
			anchor = fmt.Sprintf("%s-%d", first, n)
		}
		out[anchor] = true
	}
	return out
}
