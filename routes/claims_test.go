package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/routes"
)

func TestDefaultID(t *testing.T) {
	for name, tc := range map[string]struct{ namespace, name, want string }{
		"plain":             {"a", "s1", "a--s1"},
		"dashes in a name":  {"a", "b--c", "a/b--c"},
		"in a namespace":    {"a--b", "c", "a--b--c"},
		"single dashes":     {"a-b", "c-d", "a-b--c-d"},
		"dashes everywhere": {"a--b", "c--d", "a--b/c--d"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := routes.DefaultID(tc.namespace, tc.name); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"short-1": true, strings.Repeat("x", 253): true,
		"": false, "a--s1": false, "a/s1": false, strings.Repeat("x", 254): false,
	} {
		if got := routes.ValidID(id); got != want {
			t.Errorf("ValidID(%.20q): got %t, want %t", id, got, want)
		}
	}
}

// labelled is a sandbox with an ID of its own, and its Pod.
func labelled(namespace, name, id string, v routes.Version) (routes.Sandbox, routes.Pod) {
	o, p := anySandbox(name, namespace+name, v), anyPod(name, "pod of "+namespace+name, namespace+name, fmt.Sprintf("10.0.1.%d", v), v)
	o.Namespace, p.Namespace, o.ID = namespace, namespace, id
	return o, p
}

// TestCopiedID shows who has an ID that two namespaces use: whoever was seen with
// it first, and nobody when both were there at the start.
func TestCopiedID(t *testing.T) {
	mine, myPod := labelled("a", "s1", "short", 5)
	copied, itsPod := labelled("b", "s2", "short", 6)
	copied.Created = noon.Add(-time.Hour)
	copiedLater := copied
	copiedLater.Version = 11
	pods := []routes.Pod{myPod, itsPod}
	for name, tc := range map[string]struct {
		first []routes.Sandbox
		then  func(*routes.Session)
		want  string
	}{
		"alone":         {first: []routes.Sandbox{mine}, want: "Serving 10.0.1.5"},
		"copied later":  {first: []routes.Sandbox{mine}, then: func(s *routes.Session) { s.Sandbox(copiedLater) }, want: "Serving 10.0.1.5"},
		"both at first": {first: []routes.Sandbox{mine, copied}, want: "NotRunning IDTaken"},
		"either order":  {first: []routes.Sandbox{copied, mine}, want: "NotRunning IDTaken"},
		"and the copy has gone": {first: []routes.Sandbox{copied, mine}, then: func(s *routes.Session) {
			s.SandboxDeleted("b", "s2", copied.UID, 12)
		}, want: "Gone Deleted"},
		"its sandbox has gone, and a list shows the copy": {first: []routes.Sandbox{mine}, then: func(s *routes.Session) {
			s.ReplaceSandboxes([]routes.Sandbox{copiedLater}, 20, noon)
		}, want: "Gone Deleted"},
		"another ID is free": {first: []routes.Sandbox{copied, mine}, then: func(s *routes.Session) {
			next := mine
			next.ID, next.Version = "other", 13
			s.Sandbox(next)
			next.ID, next.Version = "short", 14
			s.SandboxDeleted("b", "s2", copied.UID, 15)
		}, want: "Gone Deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			table, s := listed(&fakeClock{noon}, 0, tc.first, pods)
			if tc.then != nil {
				tc.then(s)
			}
			if got := describe(table.Lookup("short")); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestCopiedIDForgotten has the table forget who had an ID: whoever was refused it
// is not given it then.
func TestCopiedIDForgotten(t *testing.T) {
	mine, myPod := labelled("a", "s1", "short", 5)
	copied, itsPod := labelled("b", "s2", "short", 11)
	table, s := listed(&fakeClock{noon}, 1, []routes.Sandbox{mine}, []routes.Pod{myPod, itsPod})
	s.Sandbox(copied)
	s.SandboxDeleted("a", "s1", mine.UID, 12)
	s.SandboxDeleted("a", "other", routes.ParseUID("other"), 13)
	if got := describe(table.Lookup("short")); got != "NotFound" {
		t.Fatalf("got %s once its fence is dropped, want NotFound", got)
	}
	copied.Version = 14
	s.Sandbox(copied)
	if got := describe(table.Lookup("short")); got != "NotRunning IDTaken" {
		t.Errorf("got %s, want NotRunning IDTaken", got)
	}
}

// TestNameTakenBefore shows that it is no way to another's traffic to be there
// before it.
func TestNameTakenBefore(t *testing.T) {
	squatter, itsPod := labelled("a", "b--c", "", 5)
	table, s := listed(&fakeClock{noon}, 0, []routes.Sandbox{squatter}, []routes.Pod{itsPod})
	if got := describe(table.Lookup("a--b--c")); got != "NotFound" {
		t.Errorf("got %s before the sandbox is there, want NotFound", got)
	}
	mine, myPod := labelled("a--b", "c", "", 11)
	s.Sandbox(mine)
	s.Pod(myPod)
	if got := describe(table.Lookup("a--b--c")); got != "Serving 10.0.1.11" {
		t.Errorf("got %s, want Serving 10.0.1.11", got)
	}
	entry, _ := routes.RouterLookup{Table: table}.GetByName("a", "b--c")
	if diff := cmp.Diff(routes.Entry{PodIP: "10.0.1.5", SandboxName: "b--c", Namespace: "a"}, entry); diff != "" {
		t.Errorf("by its name (-want +got):\n%s", diff)
	}
}

// TestContendersAreBounded has more sandboxes want one ID than are remembered.
func TestContendersAreBounded(t *testing.T) {
	first, pod := labelled("a", "first", "short", 5)
	table, s := listed(&fakeClock{noon}, 0, []routes.Sandbox{first}, []routes.Pod{pod})
	for i := range 200 {
		o, _ := labelled("a", fmt.Sprintf("s%d", i), "short", routes.Version(11+i))
		o.Created = noon
		s.Sandbox(o)
	}
	if got := table.Stats().Contenders; got != 64 {
		t.Errorf("%d wait for the ID, want 64", got)
	}
}

// TestHintDuringRead shows that a live read ends only what hints from before it
// began.
func TestHintDuringRead(t *testing.T) {
	dead := routes.Hint{Namespace: "a", Name: "s1", State: routes.Dead, Version: 5}
	ref := routes.Ref{Kind: routes.Sandboxes, Namespace: "a", Name: "s1"}
	read := &stored{sandboxes: map[string]routes.Sandbox{"a/s1": anySandbox("s1", "u1", 5)}}
	table, s := oneRunning(&fakeClock{noon}, 0)
	table.Hint(dead)
	read.during = func() { table.Hint(dead) }
	for _, want := range []string{"NotKnown Unconfirmed", "Serving 10.0.0.1"} {
		if _, err := s.Resolve(t.Context(), ref, read); err != nil {
			t.Fatal(err)
		}
		if got := describe(table.Lookup("a--s1")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		read.during = nil
	}
}
