package platform

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// What is as it is to be is not rewritten, and what is to be nothing is taken away.
func TestRewritten(t *testing.T) {
	spec := map[string]any{"kept": "a", "changed": "b", "new": "c"}
	box := makeBox("m", v2, set(map[string]any{"kept": "a", "changed": "x", "old": "d"}, "spec"))
	want := []Field{{[]string{"spec", "changed"}, "b"}, {[]string{"spec", "new"}, "c"}, {[]string{"spec", "old"}, nil}}
	got := Rewritten(box, spec, []string{"kept"}, []string{"changed"}, []string{"new"}, []string{"old"}, []string{"none"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Rewritten() (-want,+got):\n%s", diff)
	}
}

func TestRepairNote(t *testing.T) {
	cold := Facts{Snapshot: freshness.Snapshot{Operation: freshness.ColdStart, Known: []freshness.Known{{Hash: "v1-a"}, {Hash: "v1-b"}}}}
	birth, kept, inPool := cold, cold, cold
	birth.Operation, kept.Operation, inPool.Operation = freshness.Birth, freshness.Birth, freshness.Birth
	kept.Pool, inPool.Pool = &freshness.Pool{}, &freshness.Pool{Replenishes: true}
	const note = "v1-a -> v1-b"
	for name, tc := range map[string]struct {
		facts Facts
		note  string
		want  bool
	}{
		"a cold start's":             {cold, note, true},
		"a member's":                 {inPool, note, true},
		"a member's that is deleted": {kept, note, false},
		"of a member without a pool": {birth, note, false},
		"none":                       {cold, "", false},
		"of another kind":            {cold, "by hand", false},
		"to itself":                  {cold, "v1-b -> v1-b", false},
		"to another revision":        {cold, "v1-a -> v1-c", false},
		"from what never was":        {cold, "v1-x -> v1-b", false},
	} {
		t.Run(name, func(t *testing.T) {
			want := ""
			if tc.want {
				want = tc.note
			}
			if got := RepairNote(makeBox("m", v2, annotated(settings.RepairedKey, tc.note)), tc.facts, "v1-b"); got != want {
				t.Errorf("RepairNote() = %q, want %q", got, want)
			}
		})
	}
}

func TestParseRepaired(t *testing.T) {
	cases := map[string]struct {
		note     string
		from, to string
		want     bool
	}{
		"what Note writes": {Repair{From: "v1-a", To: "v1-b"}.Note(), "v1-a", "v1-b", true},
		"nothing":          {"", "", "", false},
		"no arrow":         {"v1-a", "", "", false},
		"no origin":        {" -> v1-b", "", "", false},
		"no outcome":       {"v1-a -> ", "", "", false},
		"to itself":        {"v1-a -> v1-a", "", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from, to, ok := ParseRepaired(tc.note)
			if ok != tc.want || ok && (from != tc.from || to != tc.to) || IsRepaired(tc.note) != tc.want {
				t.Errorf("ParseRepaired(%q) = %q, %q, %t; want %q, %q, %t", tc.note, from, to, ok, tc.from, tc.to, tc.want)
			}
		})
	}
}
