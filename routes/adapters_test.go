package routes_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/routes"
	"github.com/freshbind/freshbind/routes/routestest"
)

// TestMutatorConformance has the table stand where OpenKruise's gateway has its
// store: it hears of Sandboxes and peers only.
func TestMutatorConformance(t *testing.T) {
	failed := routestest.Failures(func(env routestest.Env) routestest.Table {
		g := &gateway{env: env}
		g.Restart()
		return g
	})
	// What such a gateway is not told it cannot know.
	want := []string{
		// Its informer keeps no count of versions that went back, and lists nothing as
		// a whole.
		"etcd-restored",
		// A route has no time at which it ends.
		"shutdown-time-passed",
		// A route has no Pod.
		"terminating-pod",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(failed))); diff != "" {
		t.Errorf("failed tests (-want +got):\n%s", diff)
	}
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		t.Log(failed[name])
	}
}

// TestMutatorUndecided has a route of an unknown sandbox come late: its Pod waits
// for a live read, too.
func TestMutatorUndecided(t *testing.T) {
	table := routes.New(routes.Options{Clock: &fakeClock{noon}})
	m := routes.Mutator{Session: table.Begin()}
	route := routes.KruiseRoute{Namespace: "a", Name: "s2", UID: "u2", IP: "10.0.0.2", State: "running", ResourceVersion: "9"}
	if _, err := m.Upsert(route); err != nil {
		t.Fatal(err)
	}
	m.Listed(noon)
	route.Name, route.UID, route.IP, route.ResourceVersion = "s1", "u1", "10.0.0.1", "5"
	if got, err := m.Upsert(route); got != routes.Undecided || err != nil {
		t.Fatalf("got %s, %v, want undecided", got, err)
	}
	kinds := map[routes.Kind]string{}
	refs, _ := table.Undecided()
	for _, ref := range refs {
		kinds[ref.Kind] = ref.Name
	}
	if diff := cmp.Diff(map[routes.Kind]string{routes.Sandboxes: "s1", routes.Pods: "s1"}, kinds); diff != "" {
		t.Errorf("undecided (-want +got):\n%s", diff)
	}
}

// gateway feeds a Mutator as OpenKruise's gateway feeds its store.
type gateway struct {
	env     routestest.Env
	table   *routes.Table
	session *routes.Session
}

func (g *gateway) Restart() {
	g.table = routes.New(routes.Options{MaxAge: g.env.MaxAge, Namespaces: g.env.Namespaces, Clock: g.env.Clock})
	g.session = g.table.Begin()
}

func (g *gateway) Lookup(id string) (string, bool) {
	a := g.table.Lookup(id)
	return a.Address().String(), a.Status == routes.Serving
}

func (g *gateway) Apply(e routestest.Event) {
	m := routes.Mutator{Session: g.session}
	switch {
	case e.Type == routestest.Listed:
		m.Listed(e.At)
	case e.Type == routestest.Proven:
		m.Proven(e.At)
	case e.Sandbox == nil:
	case e.Type == routestest.Changed:
		_, _ = m.Upsert(kruiseRoute(*e.Sandbox))
	case e.Type == routestest.Deleted:
		_, _ = m.Delete(e.Sandbox.Namespace, e.Sandbox.Name, strconv.FormatUint(e.Sandbox.Version, 10))
	default:
		_, _ = m.Delete(e.Sandbox.Namespace, e.Sandbox.Name, "")
	}
}

func (g *gateway) Refresh(p routestest.Message) {
	m := routes.Mutator{Session: g.session, Peer: true}
	_, _ = m.Upsert(routes.KruiseRoute{
		Namespace: p.Namespace, Name: p.Name, ID: p.ID, UID: p.UID, IP: p.IP, State: p.State, ResourceVersion: p.Version,
	})
}

// kruiseRoute is what OpenKruise makes of a Sandbox.
func kruiseRoute(s routestest.Sandbox) routes.KruiseRoute {
	state := s.State
	switch {
	case s.PodIP == "":
		state = "creating"
	case s.NotReady:
		state = "dead"
	}
	return routes.KruiseRoute{
		Namespace: s.Namespace, Name: s.Name, ID: s.ID, UID: s.UID, IP: s.PodIP, State: state, ResourceVersion: strconv.FormatUint(s.Version, 10),
		Owner: s.Claim,
	}
}

func TestMutator(t *testing.T) {
	clock := &fakeClock{noon}
	table := routes.New(routes.Options{Clock: clock})
	own := routes.Mutator{Session: table.Begin()}
	peer := routes.Mutator{Session: own.Session, Peer: true}
	route := routes.KruiseRoute{Namespace: "a", Name: "s1", UID: "u1", IP: "10.0.0.1", State: "running", ResourceVersion: "5"}
	upsert := func(m routes.Mutator, r routes.KruiseRoute) {
		t.Helper()
		if _, err := m.Upsert(r); err != nil {
			t.Fatal(err)
		}
	}
	want := func(id, answer, when string) {
		t.Helper()
		if got := describe(table.Lookup(id)); got != answer {
			t.Errorf("%s: got %s, want %s", when, got, answer)
		}
	}
	upsert(own, route)
	want("a--s1", "NotKnown ViewIncomplete", "before the first list is complete")
	own.Listed(clock.now)
	want("a--s1", "Serving 10.0.0.1", "after it")
	other := route
	other.Name, other.UID, other.ResourceVersion = "s2", "u2", "9"
	upsert(peer, other)
	want("a--s2", "NotFound", "a peer's push adds nothing")
	upsert(own, other)
	want("a--s1", "NotRunning AddressTaken", "another sandbox has its IP")
	want("a--s2", "Serving 10.0.0.1", "which is served")
	if _, err := peer.Delete("a", "s2", "9"); err != nil {
		t.Fatal(err)
	}
	want("a--s2", "NotKnown Unconfirmed", "after a peer's delete")
	if _, err := own.Delete("a", "s2", ""); err != nil {
		t.Fatal(err)
	}
	upsert(own, other)
	want("a--s2", "Gone Deleted", "a late event after a delete")
	if _, err := own.Upsert(routes.KruiseRoute{ResourceVersion: "x"}); !errors.Is(err, routes.ErrVersion) {
		t.Errorf("got %v for a version without order, want ErrVersion", err)
	}
}

func TestRouterLookup(t *testing.T) {
	clock := &fakeClock{noon}
	table, s := oneRunning(clock, 0)
	lookup := routes.RouterLookup{Table: table}
	want := routes.Entry{PodIP: "10.0.0.1", SandboxName: "s1", Namespace: "a"}
	byUID, _ := lookup.Get("u1")
	byName, _ := lookup.GetByName("a", "s1")
	if diff := cmp.Diff([]routes.Entry{want, want}, []routes.Entry{byUID, byName}); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if lookup.InvalidateByName("a", "s1", "10.0.0.2") || !lookup.InvalidateByName("a", "s1", "10.0.0.1") || lookup.Invalidate("u1") {
		t.Error("an entry is invalidated once, and only where it is")
	}
	if _, ok := lookup.Get("u1"); ok {
		t.Error("an invalidated entry is served")
	}
	clock.now = clock.now.Add(1)
	s.Proven(routes.Sandboxes, clock.now)
	if _, ok := lookup.Get("u1"); !ok {
		t.Error("an entry that is still there is not served again")
	}
	s.SandboxDeleted("a", "s1", routes.ParseUID("u1"), 20)
	if _, ok := lookup.Get("u1"); ok {
		t.Error("a deleted sandbox is served by its UID")
	}
}
