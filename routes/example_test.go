package routes_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/freshbind/freshbind/routes"
)

// A table is filled by a session, from lists and then from events. What was
// deleted stays deleted, whatever arrives late.
func ExampleTable() {
	clock := &fakeClock{now: noon}
	table := routes.New(routes.Options{MaxAge: 5 * time.Second, MaxFences: 100, Clock: clock})
	sandbox := routes.Sandbox{Namespace: "team-a", Name: "one", UID: routes.ParseUID("u1"), Version: 5, State: routes.Running}
	pod := routes.Pod{
		Namespace: "team-a", Name: "one", UID: routes.ParseUID("p1"), Version: 6, Sandbox: "one", SandboxUID: sandbox.UID,
		Address: netip.MustParseAddr("10.0.0.1"), Ready: true,
	}
	show := func(when string) {
		a := table.Lookup("team-a--one")
		fmt.Println(when+":", a.Status, a.Address())
	}
	show("before the lists")

	session := table.Begin()
	session.ReplaceSandboxes([]routes.Sandbox{sandbox}, 10, clock.now)
	session.ReplacePods([]routes.Pod{pod}, 10, clock.now)
	show("listed")

	session.SandboxDeleted("team-a", "one", sandbox.UID, 12)
	show("deleted")

	sandbox.Version = 11
	fmt.Println("late event:", session.Sandbox(sandbox))
	show("after it")
	// Output:
	// before the lists: NotKnown invalid IP
	// listed: Serving 10.0.0.1
	// deleted: Gone invalid IP
	// late event: fenced
	// after it: Gone invalid IP
}
