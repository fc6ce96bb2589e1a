package routes_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/routes"
)

// Somebody takes the label that Pods are selected by from the Pod of s1, which the watch tells as a delete at version 12.
func TestPodThatLeftTheWatch(t *testing.T) {
	back := anyPod("s1", "p1", "u1", "10.0.0.1", 14)
	read := func(pods ...routes.Pod) func(*routes.Table, *routes.Session) {
		return func(table *routes.Table, s *routes.Session) {
			s.Pod(back)
			found := &stored{pods: map[string]routes.Pod{}}
			for _, p := range pods {
				found.pods["a/"+p.Name] = p
			}
			refs, _ := table.Undecided()
			for _, ref := range refs {
				_, _ = s.Resolve(t.Context(), ref, found)
			}
		}
	}
	list := func(p routes.Pod) func(*routes.Table, *routes.Session) {
		return func(_ *routes.Table, s *routes.Session) { s.ReplacePods([]routes.Pod{p}, 20, noon) }
	}
	at := func(v routes.Version) routes.Pod { return anyPod("s1", "p1", "u1", "10.0.0.1", v) }
	for name, tc := range map[string]struct {
		then func(*routes.Table, *routes.Session)
		want string
	}{
		"a late event":                       {func(_ *routes.Table, s *routes.Session) { s.Pod(at(11)) }, "NotRunning NoPod"},
		"it is back, and nobody has read it": {func(_ *routes.Table, s *routes.Session) { s.Pod(back) }, "NotRunning NoPod"},
		"it is back":                         {read(back), "Serving 10.0.0.1"},
		"it came back, and has gone":         {read(), "NotRunning NoPod"},
		"it left again during the read": {func(table *routes.Table, s *routes.Session) {
			s.Pod(back)
			s.PodDeleted("a", "s1", routes.ParseUID("p1"), 16)
			read(at(15))(table, s)
		}, "NotRunning NoPod"},
		"a live read had it before the delete came": {func(table *routes.Table, s *routes.Session) {
			read(back)(table, s)
			s.PodDeleted("a", "s1", routes.ParseUID("p1"), 13)
			read(back)(table, s)
		}, "Serving 10.0.0.1"},
		"a list shows it again":               {list(back), "Serving 10.0.0.1"},
		"a list shows it as before, restored": {list(at(11)), "NotKnown ViewIncomplete"},
	} {
		t.Run(name, func(t *testing.T) {
			table, s := oneRunning(&fakeClock{noon}, 0)
			s.PodDeleted("a", "s1", routes.ParseUID("p1"), 12)
			tc.then(table, s)
			if diff := cmp.Diff(tc.want, describe(table.Lookup("a--s1"))); diff != "" {
				t.Errorf("answer (-want,+got):\n%s", diff)
			}
		})
	}
}

// A sandbox that is being deleted for long is in every list meanwhile, which says nothing of a restored etcd.
func TestListsOfADyingSandbox(t *testing.T) {
	dying := func(v routes.Version) routes.Sandbox {
		o := anySandbox("s2", "u2", v)
		o.State = routes.Dead
		return o
	}
	for name, tc := range map[string]struct {
		first []routes.Sandbox
		event routes.Version
		shown routes.Sandbox
		want  routes.Outcome
	}{
		"as the watch told it":          {event: 12, shown: dying(12), want: routes.Applied},
		"written to since":              {event: 12, shown: dying(13), want: routes.Applied},
		"as the first list had it":      {first: []routes.Sandbox{dying(9)}, shown: dying(9), want: routes.Applied},
		"older than the watch told it":  {event: 12, shown: dying(11), want: routes.Restored},
		"no longer being deleted":       {event: 12, shown: anySandbox("s2", "u2", 13), want: routes.Restored},
		"not being deleted, and as old": {shown: anySandbox("s2", "u2", 9), want: routes.Restored},
		"the next of its name":          {event: 12, shown: anySandbox("s2", "u9", 13), want: routes.Applied},
		"another one, dying, at its version": {event: 12, shown: routes.Sandbox{
			Namespace: "a", Name: "s2", UID: routes.ParseUID("u9"), Version: 12, State: routes.Dead,
		}, want: routes.Restored},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := listed(&fakeClock{noon}, 0, tc.first, nil)
			if tc.event > 0 {
				s.Sandbox(dying(tc.event))
			}
			if got := s.ReplaceSandboxes([]routes.Sandbox{tc.shown}, 20, noon); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
