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

func describe(a routes.Answer) string {
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
		"gone before a new session": {do: func(t *routes.Table, _ *routes.Session, c *fakeClock) {
			s := t.Begin()
			s.ReplaceSandboxes(nil, 20, c.now)
			s.ReplacePods(nil, 20, c.now)
		}, want: "NotFound"},
		"proven without a list": {do: func(t *routes.Table, _ *routes.Session, c *fakeClock) {
			s := t.Begin()
			s.Sandbox(anySandbox("s1", "u1", 5))
			s.Pod(anyPod("s1", "p1", "u1", "10.0.0.1", 6))
			s.Proven(routes.Pods, c.now)
			s.Proven(routes.Sandboxes, c.now)
		}, want: "NotKnown ViewIncomplete"},
		"late status": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			o := anySandbox("s1", "u1", 4)
			o.State = routes.Paused
			s.Sandbox(o)
		}, want: "Serving 10.0.0.1"},
		"late event of a deleted pod": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			s.PodDeleted("a", "s1", routes.ParseUID("p1"), 12)
			s.Pod(anyPod("s1", "p1", "u1", "10.0.0.1", 11))
		}, want: "NotRunning NoPod"},
		"late delete of the pod before": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			s.Pod(anyPod("s1", "p2", "u1", "10.0.0.2", 13))
			s.PodDeleted("a", "s1", routes.ParseUID("p1"), 12)
		}, want: "Serving 10.0.0.2"},
		"recycled before it was listed": {do: func(t *routes.Table, _ *routes.Session, c *fakeClock) {
			s := t.Begin()
			o := anySandbox("s1", "u1", 15)
			o.Recycled = 1
			s.ReplaceSandboxes([]routes.Sandbox{o}, 20, c.now)
			s.ReplacePods([]routes.Pod{anyPod("s1", "p1", "u1", "10.0.0.1", 16)}, 20, c.now)
		}, want: "Gone Recycled"},
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
		"pod of another sandbox, by its name": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			s.Pod(disowned(11))
		}, want: "NotRunning NoPod"},
		"pod of another sandbox, and its own again": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			s.Pod(disowned(11))
			s.Pod(anyPod("s1", "p1", "u1", "10.0.0.1", 12))
		}, want: "Serving 10.0.0.1"},
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
		"address of a pod from before, late": {do: func(_ *routes.Table, s *routes.Session, _ *fakeClock) {
			s.Pod(anyPod("s1", "p1", "u1", "10.0.0.3", 14))
			s.Pod(anyPod("s2", "p2", "u2", "10.0.0.3", 11))
		}, want: "Serving 10.0.0.3"},
		"hint that it runs": {do: func(t *routes.Table, _ *routes.Session, _ *fakeClock) {
			t.Hint(routes.Hint{Namespace: "a", Name: "s1", State: routes.Running, Version: 99})
		}, want: "Serving 10.0.0.1"},
		"hint, and a proof from before": {do: func(t *routes.Table, s *routes.Session, c *fakeClock) {
			c.now = c.now.Add(time.Second)
			t.Hint(routes.Hint{Namespace: "a", Name: "s1", State: routes.Dead, Version: 5})
			s.Proven(routes.Sandboxes, c.now.Add(-1))
		}, want: "NotKnown Unconfirmed"},
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
			if diff := cmp.Diff(tc.want, describe(table.Lookup(tc.id))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFenced shows what late events of a deleted sandbox's name can do.
func TestFenced(t *testing.T) {
	for name, tc := range map[string]struct {
		event routes.Sandbox
		want  routes.Outcome
	}{
		"itself":                      {anySandbox("s1", "u1", 11), routes.Fenced},
		"itself, after its deletion":  {anySandbox("s1", "u1", 30), routes.Fenced},
		"the one before":              {anySandbox("s1", "u0", 11), routes.Fenced},
		"the next one":                {anySandbox("s1", "u2", 21), routes.Applied},
		"another, of the same moment": {anySandbox("s2", "u3", 11), routes.Applied},
	} {
		t.Run(name, func(t *testing.T) {
			table, s := oneRunning(&fakeClock{noon}, 0)
			s.SandboxDeleted("a", "s1", routes.ParseUID("u1"), 20)
			if got := s.Sandbox(tc.event); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if got := table.Stats().SandboxFences; (got == 0) != (name == "the next one") {
				t.Errorf("%d fences are left", got)
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
	if got := describe(table.Lookup("a--s1")); got != "NotFound" {
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
		answer  string
	}{
		"there":       {read: &stored{sandboxes: found}, want: routes.Applied, answer: "NotRunning NoPod"},
		"not there":   {read: &stored{}, want: routes.Stale, answer: "NotFound"},
		"cannot tell": {read: &stored{err: context.DeadlineExceeded}, want: routes.Undecided, wantErr: context.DeadlineExceeded, answer: "NotFound"},
		"created during the read": {
			read: &stored{}, want: routes.Stale, answer: "NotRunning NoPod",
			during: func(s *routes.Session) { s.Sandbox(anySandbox("s2", "u2", 12)) },
		},
		"deleted during the read": {
			read: &stored{sandboxes: found}, want: routes.Fenced, answer: "NotFound",
			during: func(s *routes.Session) { s.SandboxDeleted("a", "s2", routes.ParseUID("u2"), 12) },
		},
		"deleted during the read, and its fence dropped": {
			read: &stored{sandboxes: found}, want: routes.Undecided, wantErr: routes.ErrUndecided, answer: "NotFound",
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
			if got := describe(table.Lookup("a--s2")); got != tc.answer {
				t.Errorf("got %s, want %s", got, tc.answer)
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
	if got := describe(table.Lookup("a--s1")); got != "NotRunning AddressTaken" {
		t.Fatalf("got %s before a live read, want NotRunning AddressTaken", got)
	}
	read := &stored{pods: map[string]routes.Pod{"a/s1": anyPod("s1", "p1", "u1", "10.0.0.1", 6)}}
	refs, _ := table.Undecided()
	for _, ref := range refs {
		if _, err := s.Resolve(t.Context(), ref, read); err != nil {
			t.Fatal(err)
		}
	}
	if got := describe(table.Lookup("a--s1")); got != "Serving 10.0.0.1" {
		t.Errorf("got %s after a live read, want Serving 10.0.0.1", got)
	}
}

func TestRestoreIsNoticed(t *testing.T) {
	for name, tc := range map[string]struct {
		list []routes.Sandbox
		v    routes.Version
		want routes.Outcome
	}{
		"newer":                    {list: []routes.Sandbox{anySandbox("s1", "u1", 20)}, v: 30, want: routes.Applied},
		"the list is older":        {v: 10, want: routes.Restored},
		"the object is older":      {list: []routes.Sandbox{anySandbox("s1", "u1", 4)}, v: 30, want: routes.Restored},
		"a deleted object is back": {list: []routes.Sandbox{anySandbox("s1", "u1", 5), anySandbox("s2", "u2", 29)}, v: 30, want: routes.Restored},
		"another object at the version of a delete": {
			list: []routes.Sandbox{anySandbox("s1", "u1", 5), anySandbox("s2", "u9", 12)}, v: 30, want: routes.Restored,
		},
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
