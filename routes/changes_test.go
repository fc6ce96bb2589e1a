package routes_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/routes"
)

func TestChanges(t *testing.T) {
	table, s := oneRunning(&fakeClock{noon}, 0)
	first := table.Changes(routes.Cursor{})
	if diff := cmp.Diff([]string{"a--s1"}, first.IDs); diff != "" || !first.Reset {
		t.Fatalf("first changes (-want +got):\n%s", diff)
	}
	s.Sandbox(anySandbox("s2", "u2", 11))
	s.Sandbox(anySandbox("s1", "u1", 12))
	s.Sandbox(anySandbox("s2", "u2", 13))
	select {
	case <-first.More:
	default:
		t.Error("a change does not wake those who wait")
	}
	cursor, err := routes.ParseCursor(first.Next.String())
	if err != nil {
		t.Fatal(err)
	}
	next := table.Changes(cursor)
	if diff := cmp.Diff([]string{"a--s1", "a--s2"}, next.IDs); diff != "" || next.Reset {
		t.Errorf("changes since, each once (-want +got):\n%s", diff)
	}
	if none := table.Changes(next.Next); none.Reset || len(none.IDs) > 0 {
		t.Errorf("got %v after the last change, want nothing", none.IDs)
	}
	table.Begin()
	if after := table.Changes(next.Next); !after.Reset {
		t.Error("a cursor of an ended session is continued")
	}
}
