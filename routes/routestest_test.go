package routes_test

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"github.com/freshbind/freshbind/routes"
	"github.com/freshbind/freshbind/routes/routestest"
)

// TestConformance runs the kit on the table itself.
func TestConformance(t *testing.T) {
	routestest.TestTable(t, func(env routestest.Env) routestest.Table { return newUnderTest(env, 0) })
}

// TestConformanceWithFewFences has nearly everything decided by the floor and by
// live reads.
func TestConformanceWithFewFences(t *testing.T) {
	routestest.TestTable(t, func(env routestest.Env) routestest.Table { return newUnderTest(env, 1) })
}

// TestMillionSteps runs as many random steps as ROUTES_STEPS says; a million when
// it is unset, and fewer with the race detector.
func TestMillionSteps(t *testing.T) {
	steps, err := strconv.Atoi(cmp.Or(os.Getenv("ROUTES_STEPS"), defaultSteps))
	if err != nil {
		t.Fatal(err)
	}
	routestest.TestHistories(t, func(env routestest.Env) routestest.Table { return newUnderTest(env, 3) }, steps)
}

// underTest is a Table with a watch that resolves what is undecided at once.
type underTest struct {
	env     routestest.Env
	fences  int
	table   *routes.Table
	session *routes.Session
	epoch   int
}

func newUnderTest(env routestest.Env, fences int) *underTest {
	u := &underTest{env: env, fences: fences}
	u.Restart()
	return u
}

func (u *underTest) Restart() {
	u.table = routes.New(routes.Options{MaxAge: u.env.MaxAge, Namespaces: u.env.Namespaces, Clock: u.env.Clock, MaxFences: u.fences})
	u.session = u.table.Begin()
	u.epoch = -1
}

func (u *underTest) Lookup(id string) (string, bool) {
	a := u.table.Lookup(id)
	return a.Address().String(), a.Status == routes.Serving
}

func (u *underTest) Apply(e routestest.Event) {
	if e.FromList || e.Epoch != u.epoch && e.Type != routestest.Listed {
		return
	}
	switch {
	case e.Type == routestest.Proven:
		u.session.Proven(routes.Sandboxes, e.At)
		u.session.Proven(routes.Pods, e.At)
	case e.Type == routestest.Listed:
		u.list(e)
	case e.Sandbox != nil && e.Type == routestest.Changed:
		u.session.Sandbox(sandbox(*e.Sandbox))
	case e.Sandbox != nil:
		u.session.SandboxDeleted(e.Sandbox.Namespace, e.Sandbox.Name, routes.ParseUID(e.Sandbox.UID), routes.Version(e.Sandbox.Version))
	case e.Type == routestest.Changed:
		u.session.Pod(pod(*e.Pod))
	default:
		u.session.PodDeleted(e.Pod.Namespace, e.Pod.Name, routes.ParseUID(e.Pod.UID), routes.Version(e.Pod.Version))
	}
	u.settle()
}

func (u *underTest) list(e routestest.Event) {
	u.epoch = e.Epoch
	sandboxes := make([]routes.Sandbox, len(e.Sandboxes))
	for i, s := range e.Sandboxes {
		sandboxes[i] = sandbox(s)
	}
	pods := make([]routes.Pod, len(e.Pods))
	for i, p := range e.Pods {
		pods[i] = pod(p)
	}
	for range 2 {
		if u.session.ReplaceSandboxes(sandboxes, routes.Version(e.Version), e.At) != routes.Restored &&
			u.session.ReplacePods(pods, routes.Version(e.Version), e.At) != routes.Restored {
			return
		}
		u.session = u.table.Begin()
	}
}

func (u *underTest) Refresh(m routestest.Message) {
	v, _ := routes.ParseVersion(m.Version)
	state, err := routes.ParseState(m.State)
	if err != nil {
		return
	}
	h := routes.Hint{Namespace: m.Namespace, Name: m.Name, UID: routes.ParseUID(m.UID), State: state, Version: v}
	u.table.Hint(h)
	u.settle()
}

func (u *underTest) settle() {
	refs, _ := u.table.Undecided()
	for _, ref := range refs {
		_, _ = u.session.Resolve(context.Background(), ref, reader{u.env.Cluster})
	}
}

// reader reads what the kit's cluster has now.
type reader struct{ cluster routestest.Cluster }

func (r reader) ReadSandbox(_ context.Context, namespace, name string) (routes.Sandbox, bool, error) {
	s, ok, err := r.cluster.ReadSandbox(namespace, name)
	return sandbox(s), ok, err
}

func (r reader) ReadPod(_ context.Context, namespace, name string) (routes.Pod, bool, error) {
	p, ok, err := r.cluster.ReadPod(namespace, name)
	return pod(p), ok, err
}

func sandbox(s routestest.Sandbox) routes.Sandbox {
	state, _ := routes.ParseState(s.State)
	return routes.Sandbox{
		Namespace: s.Namespace, Name: s.Name, UID: routes.ParseUID(s.UID), Version: routes.Version(s.Version), ID: s.ID, State: state,
		PodName: s.PodName, PodUID: routes.ParseUID(s.PodUID), Claim: routes.ParseUID(s.Claim), Recycled: uint32(s.Recycled),
		Created: s.Created, Expires: s.Expires,
	}
}

func pod(p routestest.Pod) routes.Pod {
	address, _ := netip.ParseAddr(p.IP)
	return routes.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: routes.ParseUID(p.UID), Version: routes.Version(p.Version),
		Sandbox: p.Sandbox, SandboxUID: routes.ParseUID(p.SandboxUID), Address: address, Created: p.Created, Ready: p.Ready, Ended: p.Terminating,
	}
}
