package routes_test

import (
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
