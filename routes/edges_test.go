package routes_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/routes"
)

// lookups is what a table says of sandboxes of namespace a.
func lookups(t *routes.Table, names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		out[name] = describe(t.Lookup(routes.DefaultID("a", name)))
	}
	return out
}

// An address that its holder leaves goes to the Pod that got it last of those that were seen since, and then to the next one.
func TestAddressGoesDownTheLine(t *testing.T) {
	names := []string{"s1", "s2", "s3"}
	var sandboxes []routes.Sandbox
	for i, name := range names {
		sandboxes = append(sandboxes, anySandbox(name, "u"+name, routes.Version(i+1)))
	}
	pod := func(name string, v routes.Version) routes.Pod { return anyPod(name, "p"+name, "u"+name, "10.0.0.9", v) }
	table, s := listed(&fakeClock{noon}, 0, sandboxes, []routes.Pod{pod("s1", 6)})
	for i, p := range []routes.Pod{pod("s2", 11), pod("s3", 12), pod("s1", 13), pod("s2", 14)} {
		if outcome := s.Pod(p); outcome != routes.Applied {
			t.Fatalf("event %d: %s", i, outcome)
		}
	}
	const serving, taken, none = "Serving 10.0.0.9", "NotRunning AddressTaken", "NotRunning NoPod"
	for i, step := range []struct {
		gone string
		v    routes.Version
		want map[string]string
	}{
		{want: map[string]string{"s1": taken, "s2": taken, "s3": serving}},
		{"s3", 15, map[string]string{"s1": taken, "s2": serving, "s3": none}},
		{"s2", 16, map[string]string{"s1": serving, "s2": none, "s3": none}},
		{"s1", 17, map[string]string{"s1": none, "s2": none, "s3": none}},
	} {
		if step.gone != "" {
			s.PodDeleted("a", step.gone, routes.ParseUID("p"+step.gone), step.v)
		}
		if diff := cmp.Diff(step.want, lookups(table, names...)); diff != "" {
			t.Errorf("step %d (-want,+got):\n%s", i, diff)
		}
	}
	if n := table.Stats().DisplacedAddresses; n != 0 {
		t.Errorf("%d addresses are waited for, want none", n)
	}
}

// Of two Pods that a list shows with one address, the one that was created later has it; every replica decides alike.
func TestAddressOfTwoInOneList(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second time.Time
		want          string // of the second
	}{
		"the second is younger": {noon.Add(-time.Hour), noon, "Serving 10.0.0.9"},
		"the second is older":   {noon, noon.Add(-time.Hour), "NotRunning AddressTaken"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := anyPod("s1", "p1", "u1", "10.0.0.9", 5), anyPod("s2", "p2", "u2", "10.0.0.9", 6)
			a.Created, b.Created = tc.first, tc.second
			sandboxes := []routes.Sandbox{anySandbox("s1", "u1", 1), anySandbox("s2", "u2", 2)}
			for _, pods := range [][]routes.Pod{{a, b}, {b, a}} {
				table, _ := listed(&fakeClock{noon}, 0, sandboxes, pods)
				if got := lookups(table, "s2")["s2"]; got != tc.want {
					t.Errorf("in the order %s, %s: %s, want %s", pods[0].Name, pods[1].Name, got, tc.want)
				}
			}
		})
	}
	// As old as each other: one of them has it, in either order the same.
	a, b := anyPod("s1", "p1", "u1", "10.0.0.9", 5), anyPod("s2", "p2", "u2", "10.0.0.9", 6)
	sandboxes := []routes.Sandbox{anySandbox("s1", "u1", 1), anySandbox("s2", "u2", 2)}
	one, _ := listed(&fakeClock{noon}, 0, sandboxes, []routes.Pod{a, b})
	other, _ := listed(&fakeClock{noon}, 0, sandboxes, []routes.Pod{b, a})
	if diff := cmp.Diff(lookups(one, "s1", "s2"), lookups(other, "s1", "s2")); diff != "" {
		t.Errorf("who has the address depends on the order of a list (-one,+other):\n%s", diff)
	}
}

// Within a namespace the oldest of those that want an ID has it, also when it is seen last; when it goes, the next oldest does.
func TestIDGoesDownTheLine(t *testing.T) {
	wants := func(name string, v routes.Version, age time.Duration) (routes.Sandbox, routes.Pod) {
		o, p := labelled("a", name, "short", v)
		o.Created = noon.Add(-age)
		return o, p
	}
	young, youngPod := wants("s1", 5, time.Minute)
	old, oldPod := wants("s2", 11, time.Hour)
	middle, middlePod := wants("s3", 12, 30*time.Minute)
	twin, twinPod := wants("s4", 13, 30*time.Minute)
	table, s := listed(&fakeClock{noon}, 0, []routes.Sandbox{young}, []routes.Pod{youngPod})
	for _, p := range []routes.Pod{oldPod, middlePod, twinPod} {
		s.Pod(p)
	}
	for i, step := range []struct {
		do   func() routes.Outcome
		want string
	}{
		{func() routes.Outcome { return routes.Applied }, "Serving 10.0.1.5"},
		{func() routes.Outcome { return s.Sandbox(old) }, "Serving 10.0.1.11"},
		{func() routes.Outcome { return s.Sandbox(middle) }, "Serving 10.0.1.11"},
		{func() routes.Outcome { return s.Sandbox(twin) }, "Serving 10.0.1.11"},
		{func() routes.Outcome { return s.SandboxDeleted("a", "s4", twin.UID, 14) }, "Serving 10.0.1.11"},
		{func() routes.Outcome { return s.SandboxDeleted("a", "s2", old.UID, 15) }, "Serving 10.0.1.12"},
		{func() routes.Outcome { return s.SandboxDeleted("a", "s3", middle.UID, 16) }, "Serving 10.0.1.5"},
		{func() routes.Outcome { return s.SandboxDeleted("a", "s1", young.UID, 17) }, "Gone Deleted"},
	} {
		if outcome := step.do(); outcome != routes.Applied {
			t.Errorf("step %d: %s", i, outcome)
		}
		if got := describe(table.Lookup("short")); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	if n := table.Stats().Contenders; n != 0 {
		t.Errorf("%d wait for the ID, want none", n)
	}
}

// A client that was away for long learns that it has to forget what it knows; one that was not goes on.
func TestChangesAreKeptUpToABound(t *testing.T) {
	table, s := oneRunning(&fakeClock{noon}, 0)
	begun := table.Changes(routes.Cursor{}).Next
	v := routes.Version(100)
	change := func(n int) {
		for range n {
			v++
			s.Sandbox(anySandbox(fmt.Sprintf("s%d", v%3), "u", v))
		}
	}
	change(20_000)
	late := table.Changes(begun)
	if !late.Reset {
		t.Error("a cursor of 20,000 changes ago is continued")
	}
	s.Sandbox(anySandbox("late1", "u", v+1))
	s.Sandbox(anySandbox("late2", "u", v+2))
	next := table.Changes(late.Next)
	if diff := cmp.Diff([]string{"a--late1", "a--late2"}, next.IDs); diff != "" || next.Reset {
		t.Errorf("reset %t; changes since then (-want,+got):\n%s", next.Reset, diff)
	}
}

func TestParseCursor(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "epoch.7": true,
		"epoch": false, ".7": false, "epoch.": false, "epoch.x": false, "epoch.-1": false,
		fmt.Sprintf("%065d.1", 0): false,
	} {
		c, err := routes.ParseCursor(text)
		if (err == nil) != want {
			t.Errorf("ParseCursor(%q) fails with %v, want that it parses: %t", text, err, want)
		}
		if want && text != "" && c.String() != text {
			t.Errorf("cursor %q is %q", text, c)
		}
	}
}

// A name that is used and deleted again and again takes the room of one, and stays deleted.
func TestFencesOfOneName(t *testing.T) {
	table, s := oneRunning(&fakeClock{noon}, 2)
	v := routes.Version(11)
	for i := range 100 {
		uid := routes.ParseUID(fmt.Sprintf("again %d", i))
		s.Sandbox(routes.Sandbox{Namespace: "a", Name: "s2", UID: uid, Version: v, State: routes.Running})
		s.SandboxDeleted("a", "s2", uid, v+1)
		v += 2
	}
	if stats := table.Stats(); stats.SandboxFences != 1 || stats.SandboxFloor != 10 {
		t.Errorf("%d fences and floor %d, want 1 and 10", stats.SandboxFences, stats.SandboxFloor)
	}
	if outcome := s.Sandbox(anySandbox("s2", "again 99", v)); outcome != routes.Fenced {
		t.Errorf("a late event of the last one is %s, want that it is fenced", outcome)
	}
	// Two more names: the lowest of three fences goes, and is the floor.
	s.SandboxDeleted("a", "s3", routes.ParseUID("u3"), v+1)
	s.SandboxDeleted("a", "s4", routes.ParseUID("u4"), v+2)
	if stats := table.Stats(); stats.SandboxFences != 2 || stats.SandboxFloor != v-1 {
		t.Errorf("%d fences and floor %d, want 2 and %d", stats.SandboxFences, stats.SandboxFloor, v-1)
	}
}

// Live reads that wait are bounded: beyond that, everything is to be listed again.
func TestUndecidedAreBounded(t *testing.T) {
	const most = 16_384
	table, s := oneRunning(&fakeClock{noon}, 0)
	for i := range most {
		if outcome := s.Pod(anyPod(fmt.Sprintf("p%d", i), "p", "u", "10.0.0.1", 5)); outcome != routes.Undecided {
			t.Fatalf("an old event of an unknown Pod is %s", outcome)
		}
	}
	if refs, all := table.Undecided(); len(refs) != most || !all {
		t.Errorf("%d wait, all of them: %t", len(refs), all)
	}
	s.Pod(anyPod("p0", "p", "u", "10.0.0.1", 5))
	if _, all := table.Undecided(); !all {
		t.Error("one that waits already counts as one more")
	}
	s.Pod(anyPod("one-more", "p", "u", "10.0.0.1", 5))
	if refs, all := table.Undecided(); len(refs) != most || all {
		t.Errorf("%d wait, all of them: %t", len(refs), all)
	}
}

// Nothing of another namespace, and nothing from an ended session, has any effect.
func TestOutsideOfTheTable(t *testing.T) {
	table := routes.New(routes.Options{Namespaces: []string{"b"}})
	s := table.Begin()
	resolved, err := s.Resolve(t.Context(), routes.Ref{Kind: routes.Pods, Namespace: "a", Name: "s1"}, &stored{})
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]routes.Outcome{
		"a sandbox": s.Sandbox(anySandbox("s1", "u1", 5)), "its delete": s.SandboxDeleted("a", "s1", routes.ParseUID("u1"), 6),
		"a Pod": s.Pod(anyPod("s1", "p1", "u1", "10.0.0.1", 5)), "a live read": resolved,
		"a hint": table.Hint(routes.Hint{Namespace: "a", Name: "s1", State: routes.Dead, Version: 9}),
	} {
		if got != routes.OutOfScope {
			t.Errorf("%s is %s, want %s", name, got, routes.OutOfScope)
		}
	}
	table.Begin()
	if got := s.Proven(routes.Pods, noon); got != routes.Superseded {
		t.Errorf("proof of an ended session is %s", got)
	}
}

// With a clock of its own a table is ready as soon as it has listed; without a session it says nothing.
func TestReady(t *testing.T) {
	clock := &fakeClock{noon}
	table := routes.New(routes.Options{MaxAge: time.Second, Clock: clock})
	if a := table.Lookup("x"); table.Ready() || a.State() != routes.Dead || a.Namespace()+a.Name()+a.SandboxUID().String()+a.PodUID().String() != "" || a.Version() != 0 {
		t.Errorf("ready %t before a list; the answer is of sandbox %s/%s", table.Ready(), a.Namespace(), a.Name())
	}
	s := table.Begin()
	s.ReplaceSandboxes([]routes.Sandbox{anySandbox("s1", "u1", 5)}, 10, clock.now)
	s.ReplacePods([]routes.Pod{anyPod("s1", "p1", "u1", "10.0.0.1", 6)}, 10, clock.now)
	a := table.Lookup("a--s1")
	if got := fmt.Sprintln(table.Ready(), a.State(), a.Namespace(), a.Name(), a.PodUID() == routes.ParseUID("p1"), a.Version()); got != "true running a s1 true 5\n" {
		t.Errorf("listed: %s", got)
	}
	if a := table.LookupUID(routes.ParseUID("u1")); a.Reason != routes.ViewIncomplete || a.Age >= 0 {
		t.Errorf("a table that keeps no UIDs answers %s of age %s", a.Reason, a.Age)
	}
	s.SandboxDeleted("a", "s1", routes.ParseUID("u1"), 11)
	if state := table.Lookup("a--s1").State(); state != routes.Dead {
		t.Errorf("a deleted sandbox is %s", state)
	}
	if clock.now = clock.now.Add(time.Second + 1); table.Ready() {
		t.Error("it is ready with a view that is too old")
	}

	real := routes.New(routes.Options{})
	real.Begin().Listed(routes.Pods, time.Now())
	if real.Ready() || real.MaxAge() != routes.DefaultMaxAge {
		t.Errorf("ready %t with one kind listed; an answer may be %s old", real.Ready(), real.MaxAge())
	}
	s = real.Begin()
	s.Listed(routes.Pods, time.Now())
	s.Listed(routes.Sandboxes, time.Now())
	if age, known := real.Age(); !known || age < 0 {
		t.Errorf("the view is %s old, known %t", age, known)
	}
}

// A sandbox in state dead is a delete, whoever says so.
func TestDeadIsDeleted(t *testing.T) {
	table, s := oneRunning(&fakeClock{noon}, 0)
	dead := anySandbox("s1", "u1", 11)
	dead.State = routes.Dead
	if outcome := s.Sandbox(dead); outcome != routes.Applied {
		t.Errorf("the event is %s", outcome)
	}
	if got := describe(table.Lookup("a--s1")); got != "Gone Deleted" {
		t.Errorf("got %s", got)
	}
	if outcome := s.Sandbox(anySandbox("s1", "u1", 12)); outcome != routes.Fenced {
		t.Errorf("and what comes later of it is %s", outcome)
	}
}

// What OpenKruise's gateway cannot have said is an error, and changes nothing.
func TestMutatorRefuses(t *testing.T) {
	table, s := oneRunning(&fakeClock{noon}, 0)
	m := routes.Mutator{Session: s}
	good := routes.KruiseRoute{Namespace: "a", Name: "s1", UID: "u1", IP: "10.0.0.2", State: "running", ResourceVersion: "20"}
	for name, spoil := range map[string]func(*routes.KruiseRoute){
		"no version":       func(r *routes.KruiseRoute) { r.ResourceVersion = "" },
		"an unknown state": func(r *routes.KruiseRoute) { r.State = "asleep" },
	} {
		r := good
		spoil(&r)
		if outcome, err := m.Upsert(r); err == nil || outcome != routes.Ignored {
			t.Errorf("%s: %s, error %v", name, outcome, err)
		}
	}
	if outcome, err := m.Delete("a", "s1", "x"); err == nil || outcome != routes.Ignored {
		t.Errorf("a delete of no version: %s, error %v", outcome, err)
	}
	if got := table.Lookup("a--s1").Address(); got != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("the route is to %s", got)
	}
}

// Words that metrics and answers use are told apart, and states are read as they are written.
func TestWords(t *testing.T) {
	var words []string
	for _, o := range routes.Outcomes() {
		words = append(words, o.String())
	}
	for _, r := range routes.Reasons() {
		words = append(words, r.String())
	}
	for _, s := range []routes.State{routes.Creating, routes.Available, routes.Running, routes.Paused, routes.Dead} {
		words = append(words, s.String())
		if got, err := routes.ParseState(s.String()); err != nil || got != s {
			t.Errorf("state %s is read as %s: %v", s, got, err)
		}
	}
	if slices.Sort(words); len(slices.Compact(slices.Clone(words))) != len(words) || words[0] == "" {
		t.Errorf("words that are the same, or empty: %q", words)
	}
	if got := routes.State(99).String(); got != "unknown" {
		t.Errorf("a state that is none is %q", got)
	}
}
