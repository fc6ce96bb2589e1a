package routes_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/routes"
)

type fakeClock struct{ now time.Time }

func (c *fakeClock) Now() time.Time                  { return c.now }
func (c *fakeClock) Since(t time.Time) time.Duration { return c.now.Sub(t) }

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// stored is what live reads find.
type stored struct {
	sandboxes map[string]routes.Sandbox
	pods      map[string]routes.Pod
	err       error
	// during is called while a read is under way.
	during func()
}

func (s *stored) ReadSandbox(_ context.Context, namespace, name string) (routes.Sandbox, bool, error) {
	o, ok := s.sandboxes[namespace+"/"+name]
	if s.during != nil {
		s.during()
	}
	return o, ok, s.err
}

func (s *stored) ReadPod(_ context.Context, namespace, name string) (routes.Pod, bool, error) {
	o, ok := s.pods[namespace+"/"+name]
	return o, ok, s.err
}

func anySandbox(name, uid string, v routes.Version) routes.Sandbox {
	return routes.Sandbox{Namespace: "a", Name: name, UID: routes.ParseUID(uid), Version: v, State: routes.Running}
}

func anyPod(name, uid, owner, ip string, v routes.Version) routes.Pod {
	return routes.Pod{
		Namespace: "a", Name: name, UID: routes.ParseUID(uid), Version: v, Sandbox: name, SandboxUID: routes.ParseUID(owner),
		Address: netip.MustParseAddr(ip), Ready: true,
	}
}

// listed is a table that has listed what it is given.
func listed(clock *fakeClock, fences int, sandboxes []routes.Sandbox, pods []routes.Pod) (*routes.Table, *routes.Session) {
	t := routes.New(routes.Options{MaxAge: 5 * time.Second, MaxFences: fences, Clock: clock, ByUID: true})
	s := t.Begin()
	s.ReplaceSandboxes(sandboxes, 10, clock.now)
	s.ReplacePods(pods, 10, clock.now)
	return t, s
}

func oneRunning(clock *fakeClock, fences int) (*routes.Table, *routes.Session) {
	return listed(clock, fences, []routes.Sandbox{anySandbox("s1", "u1", 5)}, []routes.Pod{anyPod("s1", "p1", "u1", "10.0.0.1", 6)})
}

func said(a routes.Answer) string {
	text := a.Status.String()
	if a.Reason != routes.None {
		text += " " + a.Reason.String()
	}
	if a.Address().IsValid() {
		text += " " + a.Address().String()
	}
	return text
}

func TestLookup(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(*routes.Table, *routes.Session, *fakeClock)
		id   string
		want string
	}{
		"running":                       {want: "Serving 10.0.0.1"},
		"never heard of":                {id: "a--other", want: "NotFound"},
		"exactly as old as it may be":   {do: func(_ *routes.Table, _ *routes.Session, c *fakeClock) { c.now = c.now.Add(5 * time.Second) }, want: "Serving 10.0.0.1"},
		"older than it may be":          {do: func(_ *routes.Table, _ *routes.Session, c *fakeClock) { c.now = c.now.Add(5*time.Second + 1) }, want: "NotKnown ViewTooOld"},
		"not known either when too old": {id: "a--other", do: func(_ *routes.Table, _ *routes.Session, c *fakeClock) { c.now = c.now.Add(time.Minute) }, want: "NotKnown ViewTooOld"},
		"only one kind proven since": {do: func(_ *routes.Table, s *routes.Session, c *fakeClock) {
			c.now = c.now.Add(time.Minute)
			s.Proven(routes.Pods, c.now)
		}, want: "NotKnown ViewTooOld"},
		"a new session lists at first": {do: func(t *routes.Table, _ *routes.Session, _ *fakeClock) { t.Begin() }, want: "NotKnown ViewIncomplete"},
		"an ended session has no effect": {do: func(t *routes.Table, s *routes.Session, c *fakeClock) {
			t.Begin()
			s.Listed(routes.Pods, c.now)
			s.Listed(routes.Sandboxes, c.now)
		}, want: "NotKnown ViewIncomplete"},
		"paused": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			o := anySandbox("s1", "u1", 11)
			o.State = routes.Paused
			s.Sandbox(o)
		}, want: "NotRunning Stopped"},
		"deleted": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			s.SandboxDeleted("a", "s1", routes.ParseUID("u1"), 11)
		}, want: "Gone Deleted"},
		"pod deleted": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			s.PodDeleted("a", "s1", routes.ParseUID("p1"), 11)
		}, want: "NotRunning NoPod"},
		"pod of another sandbox": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			s.Pod(anyPod("s1", "p2", "u2", "10.0.0.1", 11))
		}, want: "NotRunning NoPod"},
		"not the pod that the status has": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			o := anySandbox("s1", "u1", 11)
			o.PodUID = routes.ParseUID("p2")
			s.Sandbox(o)
		}, want: "NotRunning NoPod"},
		"address of the node": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			p := anyPod("s1", "p1", "u1", "10.0.0.1", 11)
			p.SharesAddress = true
			s.Pod(p)
		}, want: "NotRunning NoPod"},
		"address taken by a newer pod": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			s.Pod(anyPod("s2", "p2", "u2", "10.0.0.1", 11))
		}, want: "NotRunning AddressTaken"},
		"address taken as IPv6 of IPv4": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			s.Pod(anyPod("s2", "p2", "u2", "::ffff:10.0.0.1", 11))
		}, want: "NotRunning AddressTaken"},
		"hint that it is dead": {do: func(t *routes.Table, _ *routes.Session, _ *fakeClock) {
			t.Hint(routes.Hint{Namespace: "a", Name: "s1", State: routes.Dead, Version: 5})
		}, want: "NotKnown Unconfirmed"},
		"hint from before": {do: func(t *routes.Table, _ *routes.Session, _ *fakeClock) {
			t.Hint(routes.Hint{Namespace: "a", Name: "s1", State: routes.Dead, Version: 4})
		}, want: "Serving 10.0.0.1"},
		"hint about an earlier sandbox": {do: func(t *routes.Table, _ *routes.Session, _ *fakeClock) {
			t.Hint(routes.Hint{Namespace: "a", Name: "s1", UID: routes.ParseUID("u0"), State: routes.Dead, Version: 5})
		}, want: "Serving 10.0.0.1"},
		"hint, and a status from before": {do: func(t *routes.Table, s *routes.Session, _ *fakeClock) {
			t.Hint(routes.Hint{Namespace: "a", Name: "s1", State: routes.Dead, Version: 5})
			s.Sandbox(anySandbox("s1", "u1", 11))
		}, want: "NotKnown Unconfirmed"},
		"hint, and a view that is newer": {do: func(t *routes.Table, s *routes.Session, c *fakeClock) {
			t.Hint(routes.Hint{Namespace: "a", Name: "s1", State: routes.Dead, Version: 5})
			c.now = c.now.Add(1)
			s.Proven(routes.Sandboxes, c.now)
		}, want: "Serving 10.0.0.1"},
		"a proof from the future": {do: func(_ *routes.Table, s *routes.Session, c *fakeClock) {
			s.Proven(routes.Sandboxes, c.now.Add(time.Hour))
			s.Proven(routes.Pods, c.now.Add(time.Hour))
			c.now = c.now.Add(time.Minute)
		}, want: "NotKnown ViewTooOld"},
		"a label cannot take an ID from a name": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			o := anySandbox("thief", "u2", 11)
			o.ID = "a--s1"
			s.Sandbox(o)
			s.Pod(anyPod("thief", "p2", "u2", "10.0.0.2", 12))
		}, want: "Serving 10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &fakeClock{noon}
			table, session := oneRunning(clock, 0)
			if tc.do != nil {
				tc.do(table, session, clock)
			}
			if tc.id == "" {
				tc.id = "a--s1"
			}
			if diff := cmp.Diff(tc.want, said(table.Lookup(tc.id))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFloor shows that what was deleted stays deleted when its fence has been
// dropped.
func TestFloor(t *testing.T) {
	clock := &fakeClock{noon}
	table, s := oneRunning(clock, 2)
	s.SandboxDeleted("a", "s1", routes.ParseUID("u1"), 11)
	for v, name := range []string{"x1", "x2"} {
		s.SandboxDeleted("a", name, routes.ParseUID(name), routes.Version(12+v))
	}
	if got := table.Stats(); got.SandboxFences != 2 || got.SandboxFloor != 11 {
		t.Fatalf("got %d fences and floor %d, want 2 and 11", got.SandboxFences, got.SandboxFloor)
	}
	if got := said(table.Lookup("a--s1")); got != "NotFound" {
		t.Errorf("got %s once its fence is dropped, want NotFound", got)
	}
	if got := s.Sandbox(anySandbox("s1", "u1", 11)); got != routes.Undecided {
		t.Errorf("got %s for what is below the floor, want undecided", got)
	}
	refs, all := table.Undecided()
	if diff := cmp.Diff([]routes.Ref{{Kind: routes.Sandboxes, Namespace: "a", Name: "s1"}}, refs); diff != "" || !all {
		t.Errorf("undecided (-want +got):\n%s", diff)
	}
	if got := s.Sandbox(anySandbox("s3", "u3", 14)); got != routes.Applied {
		t.Errorf("got %s for what is above the floor, want applied", got)
	}
}

func TestResolve(t *testing.T) {
	ref := routes.Ref{Kind: routes.Sandboxes, Namespace: "a", Name: "s2"}
	found := map[string]routes.Sandbox{"a/s2": anySandbox("s2", "u2", 9)}
	for name, tc := range map[string]struct {
		read    *stored
		during  func(*routes.Session)
		want    routes.Outcome
		wantErr error
		said    string
	}{
		"there":       {read: &stored{sandboxes: found}, want: routes.Applied, said: "NotRunning NoPod"},
		"not there":   {read: &stored{}, want: routes.Stale, said: "NotFound"},
		"cannot tell": {read: &stored{err: context.DeadlineExceeded}, want: routes.Undecided, wantErr: context.DeadlineExceeded, said: "NotFound"},
		"deleted during the read": {
			read: &stored{sandboxes: found}, want: routes.Fenced, said: "NotFound",
			during: func(s *routes.Session) { s.SandboxDeleted("a", "s2", routes.ParseUID("u2"), 12) },
		},
		"deleted during the read, and its fence dropped": {
			read: &stored{sandboxes: found}, want: routes.Undecided, wantErr: routes.ErrUndecided, said: "NotFound",
			during: func() func(*routes.Session) {
				v := routes.Version(12)
				return func(s *routes.Session) {
					for _, name := range []string{"s2", "x1", "x2"} {
						s.SandboxDeleted("a", name, routes.ParseUID(name), v)
						v++
					}
				}
			}(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			table, s := oneRunning(&fakeClock{noon}, 2)
			if tc.during != nil {
				tc.read.during = func() { tc.during(s) }
			}
			got, err := s.Resolve(t.Context(), ref, tc.read)
			if got != tc.want || !errors.Is(err, tc.wantErr) {
				t.Errorf("got %s, %v, want %s, %v", got, err, tc.want, tc.wantErr)
			}
			if got := said(table.Lookup("a--s2")); got != tc.said {
				t.Errorf("got %s, want %s", got, tc.said)
			}
		})
	}
}

// TestAddressHandedBack has a Pod that lost its address to another one, which
// then went: only a live read, or a newer event, gives it back.
func TestAddressHandedBack(t *testing.T) {
	table, s := oneRunning(&fakeClock{noon}, 0)
	s.Pod(anyPod("s2", "p2", "u2", "10.0.0.1", 11))
	s.PodDeleted("a", "s2", routes.ParseUID("p2"), 12)
	if got := said(table.Lookup("a--s1")); got != "NotRunning AddressTaken" {
		t.Fatalf("got %s before a live read, want NotRunning AddressTaken", got)
	}
	read := &stored{pods: map[string]routes.Pod{"a/s1": anyPod("s1", "p1", "u1", "10.0.0.1", 6)}}
	refs, _ := table.Undecided()
	for _, ref := range refs {
		if _, err := s.Resolve(t.Context(), ref, read); err != nil {
			t.Fatal(err)
		}
	}
	if got := said(table.Lookup("a--s1")); got != "Serving 10.0.0.1" {
		t.Errorf("got %s after a live read, want Serving 10.0.0.1", got)
	}
}

func TestRestoreIsNoticed(t *testing.T) {
	for name, tc := range map[string]struct {
		list []routes.Sandbox
		v    routes.Version
		want routes.Outcome
	}{
		"newer":                        {list: []routes.Sandbox{anySandbox("s1", "u1", 20)}, v: 30, want: routes.Applied},
		"the list is older":            {v: 10, want: routes.Restored},
		"the object is older":          {list: []routes.Sandbox{anySandbox("s1", "u1", 4)}, v: 30, want: routes.Restored},
		"a deleted object is back":     {list: []routes.Sandbox{anySandbox("s1", "u1", 5), anySandbox("s2", "u2", 29)}, v: 30, want: routes.Restored},
		"an old object was not listed": {list: []routes.Sandbox{anySandbox("s1", "u1", 5), anySandbox("s3", "u3", 9)}, v: 30, want: routes.Restored},
		"another object at its version": {
			list: []routes.Sandbox{anySandbox("s1", "u9", 5)}, v: 30, want: routes.Restored,
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &fakeClock{noon}
			table, s := oneRunning(clock, 0)
			s.SandboxDeleted("a", "s2", routes.ParseUID("u2"), 12)
			if got := s.ReplaceSandboxes(tc.list, tc.v, clock.now); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if _, known := table.Age(); known != (tc.want == routes.Applied) {
				t.Errorf("the view has an age: %t, want %t", known, !known)
			}
		})
	}
}

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
		if got := said(table.Lookup(id)); got != answer {
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

func TestParseVersion(t *testing.T) {
	for _, text := range []string{"", "0", "-1", "+1", "01", "1.5", "x", "99999999999999999999999"} {
		if _, err := routes.ParseVersion(text); !errors.Is(err, routes.ErrVersion) {
			t.Errorf("ParseVersion(%q): got %v, want ErrVersion", text, err)
		}
	}
	if v, err := routes.ParseVersion("120"); v != 120 || err != nil {
		t.Errorf("got %d, %v, want 120", v, err)
	}
}

func TestUID(t *testing.T) {
	const text = "e2e6c7b8-2222-4444-8888-aaaaaaaaaaaa"
	if got := routes.ParseUID(text).String(); got != text {
		t.Errorf("got %q, want %q", got, text)
	}
	if routes.ParseUID("a") == routes.ParseUID("b") || routes.ParseUID("").String() != "" {
		t.Error("UIDs that are no UUIDs are not told apart")
	}
}
