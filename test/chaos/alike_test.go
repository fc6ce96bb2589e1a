package chaos

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The long form leaves out what ends before a platform is asked, the short one all that is
// alike.
func TestAlsoElsewhere(t *testing.T) {
	unreads := []string{"bodies-huge", "bodies-slow", "bodies-announced", "connections-many"}
	cases := map[string]struct {
		long bool
		want []string
	}{
		"short": {want: append(slices.Clone(unreads), "leader-frozen", "etcd-restored")},
		"long":  {long: true, want: unreads},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			made := alsoElsewhere(tc.long)
			var out []string
			for _, f := range faults {
				if !slices.ContainsFunc(made, func(m fault) bool { return m.name == f.name }) {
					out = append(out, f.name)
				}
			}
			if diff := cmp.Diff(tc.want, out); diff != "" {
				t.Errorf("left out (-want,+got):\n%s", diff)
			}
		})
	}
}

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
