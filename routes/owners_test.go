package routes_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/routes"
)

// disowned is the Pod of s1 when its owner reference combines the UID of s1 with another name.
func disowned(v routes.Version) routes.Pod {
	p := anyPod("s1", "p1", "u1", "10.0.0.1", v)
	p.Sandbox = "gone"
	return p
}

// However a Pod with a wrong owner loses its address, nothing is sent there for its sandbox.
func TestAddressOfADisownedPod(t *testing.T) {
	for name, lose := range map[string]func(*routes.Session){
		"deleted": func(s *routes.Session) { s.PodDeleted("a", "s1", routes.ParseUID("p1"), 12) },
		"ended": func(s *routes.Session) {
			p := disowned(12)
			p.Ended = true
			s.Pod(p)
		},
		"missing in a list": func(s *routes.Session) { s.ReplacePods(nil, 12, noon) },
		"missing in a live read": func(s *routes.Session) {
			_, _ = s.Resolve(t.Context(), routes.Ref{Kind: routes.Pods, Namespace: "a", Name: "s1"}, &stored{})
		},
		"another address": func(s *routes.Session) {
			p := disowned(12)
			p.Address = netip.MustParseAddr("10.0.0.2")
			s.Pod(p)
		},
		"deleted unseen": func(*routes.Session) {},
	} {
		t.Run(name, func(t *testing.T) {
			table, s := oneRunning(&fakeClock{noon}, 0)
			s.Pod(disowned(11))
			lose(s)
			s.Sandbox(anySandbox("s2", "u2", 13))
			s.Pod(anyPod("s2", "p2", "u2", "10.0.0.1", 14))
			want := map[string]string{"s1": "NotRunning NoPod", "s2": "Serving 10.0.0.1"}
			if diff := cmp.Diff(want, lookups(table, "s1", "s2")); diff != "" {
				t.Errorf("answers (-want,+got):\n%s", diff)
			}
		})
	}
}

// A Pod that a list shows at the version it had, with another owner's name, is of a restored etcd.
func TestRestoreChangesAnOwner(t *testing.T) {
	_, s := oneRunning(&fakeClock{noon}, 0)
	if got := s.ReplacePods([]routes.Pod{disowned(6)}, 12, noon); got != routes.Restored {
		t.Errorf("got %s, want restored", got)
	}
}

// Two sandboxes name one Pod, and its owner changes forth and back: at most the one that owns it is served, and none once
// it is gone.
func TestOwnersOfOnePod(t *testing.T) {
	table, s := listed(&fakeClock{noon}, 0, nil, nil)
	for i, name := range []string{"s1", "s2"} {
		o := anySandbox(name, "u"+name, routes.Version(11+i))
		o.PodName = "p"
		s.Sandbox(o)
	}
	const serving, none = "Serving 10.0.0.9", "NotRunning NoPod"
	for i, step := range []struct {
		name, uid string
		want      map[string]string
	}{
		{"s1", "us1", map[string]string{"s1": serving, "s2": none}},
		{"s2", "us2", map[string]string{"s1": none, "s2": serving}},
		{"s2", "us1", map[string]string{"s1": none, "s2": none}},
		{"s1", "us1", map[string]string{"s1": serving, "s2": none}},
		{"s1", "us2", map[string]string{"s1": none, "s2": none}},
		{"s2", "us2", map[string]string{"s1": none, "s2": serving}},
		{"gone", "us2", map[string]string{"s1": none, "s2": none}},
		{"s2", "us2", map[string]string{"s1": none, "s2": serving}},
		{"s1", "us1", map[string]string{"s1": serving, "s2": none}},
		{"", "", map[string]string{"s1": none, "s2": none}},
		{"s1", "us1", map[string]string{"s1": serving, "s2": none}},
		{"s1", "gone", map[string]string{"s1": none, "s2": none}},
	} {
		p := anyPod("p", "pod", step.uid, "10.0.0.9", routes.Version(20+i))
		p.Sandbox = step.name
		s.Pod(p)
		if diff := cmp.Diff(step.want, lookups(table, "s1", "s2")); diff != "" {
			t.Errorf("step %d (-want,+got):\n%s", i, diff)
		}
	}
	s.PodDeleted("a", "p", routes.ParseUID("pod"), 50)
	if diff := cmp.Diff(map[string]string{"s1": none, "s2": none}, lookups(table, "s1", "s2")); diff != "" {
		t.Errorf("deleted (-want,+got):\n%s", diff)
	}
}
