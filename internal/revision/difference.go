package revision

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Difference is one leaf in which two blueprints differ. Its fields can hold secrets; String and Summary do not print the values of
// environment variables and HTTP headers.
type Difference struct {
	// Path of the leaf, in the grammar of ParsePaths; of the list where the order of elements differs.
	Path string `json:"path"`
	// Want and Got are compact JSON; "" says that this side has no such leaf. Where the order differs they list the merge keys of the
	// elements that both have. Of a redacted blueprint they are digests.
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
	// Root is the highest path at or above Path where one side has nothing at all: an added container has a leaf for each of its fields,
	// and all have the container for their root. An element that only its position names has its list for a root.
	Root string `json:"root"`
}

const (
	hidden       = "<hidden>"
	absent       = "(absent)"
	maxValueText = 64
)

var secretPath = regexp.MustCompile(`(^|\.)(env|httpHeaders)\[.*\]\.value$`)

// String is for people: containers[name=python].image: "sandbox:v1" -> "sandbox:v2". The path is relative to podTemplate.spec if it can
// be, and long values are cut.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s -> %s", shortPath(d.Path), d.display(d.Want), d.display(d.Got))
}

func (d Difference) display(value string) string {
	switch {
	case value == "":
		return absent
	case secretPath.MatchString(d.Path):
		return hidden
	default:
		return truncate(value, maxValueText)
	}
}

func shortPath(path string) string {
	return strings.TrimPrefix(path, podTemplateKey+"."+specKey+".")
}

// Summary renders at most limit differences in one line, taking those with one root together, and says how many leaves more there are. A
// limit of 0 or less is none.
func Summary(diffs []Difference, limit int) string {
	groups := groupByRoot(diffs)
	if limit <= 0 || limit > len(groups) {
		limit = len(groups)
	}
	parts := make([]string, 0, limit+1)
	for _, group := range groups[:limit] {
		parts = append(parts, groupText(group))
	}
	rest := 0
	for _, group := range groups[limit:] {
		rest += len(group)
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(parts, "; ")
}

func groupByRoot(diffs []Difference) [][]Difference {
	var groups [][]Difference
	for i, d := range diffs {
		if i > 0 && d.Root == diffs[i-1].Root && d.oneSided() && diffs[i-1].oneSided() && (d.Want == "") == (diffs[i-1].Want == "") {
			groups[len(groups)-1] = append(groups[len(groups)-1], d)
			continue
		}
		groups = append(groups, []Difference{d})
	}
	return groups
}

func (d Difference) oneSided() bool { return d.Want == "" || d.Got == "" }

func groupText(group []Difference) string {
	first := group[0]
	if len(group) == 1 {
		return first.String()
	}
	what := "added"
	if first.Got == "" {
		what = "removed"
	}
	return fmt.Sprintf("%s: %s (%d fields)", shortPath(first.Root), what, len(group))
}

// InjectedPaths returns the paths that would allow what got has and want has not, ready for ParsePaths: the roots of those differences,
// sorted. It is empty if nothing of the sort is among diffs.
func InjectedPaths(diffs []Difference) []string {
	var paths []string
	for _, d := range diffs {
		if d.Want == "" {
			paths = append(paths, d.Root)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
