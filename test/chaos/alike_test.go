package chaos

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Those who read what is tested with which platform are told of every fault that is made
// with one alone.
func TestWhatIsAlikeIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/platforms.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "| fault that is made with agent-sandbox alone |")
	if !found {
		t.Fatal("docs/platforms.md has no table of them")
	}
	list, _, _ = strings.Cut(list, "\n\n")
	var want, got []string
	for _, f := range faults {
		if f.alike != "" {
			want = append(want, f.name)
		}
	}
	for row := range strings.Lines(list) {
		if cells := strings.Split(row, "|"); len(cells) > 1 {
			for _, name := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(cells[1], -1) {
				got = append(got, name[1])
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/platforms.md and the faults (-want,+got):\n%s", diff)
	}
}
