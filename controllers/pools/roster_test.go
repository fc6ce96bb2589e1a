package pools

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// storeOf has the harness see members by a real store, and returns what fills it.
func storeOf(t *testing.T, r *harness) (put, drop func(...*unstructured.Unstructured)) {
	t.Helper()
	return storeBy(t, r, platform.NewReducer(agentsandbox.Objects{}))
}

// storeBy is storeOf with another reducer.
func storeBy(t *testing.T, r *harness, reducer *platform.Reducer) (put, drop func(...*unstructured.Unstructured)) {
	t.Helper()
	store := members.NewStore(reducer)
	sandboxes, pods := store.FeedSandboxes("", func() {}), store.FeedPods("", func() {})
	r.view.members, r.view.pods = store, store
	each := func(do func(u *unstructured.Unstructured) error) func(...*unstructured.Unstructured) {
		return func(objs ...*unstructured.Unstructured) {
			t.Helper()
			for _, u := range objs {
				if err := do(u); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	put = each(func(u *unstructured.Unstructured) error {
		if u.GetKind() == "Pod" {
			return pods.Add(u)
		}
		return sandboxes.Add(u)
	})
	return put, each(func(u *unstructured.Unstructured) error { return sandboxes.Delete(u) })
}

// judgedBefore is no class that a member is found to be.
const judgedBefore freshness.Class = "judged before"

// What a pool of 10,000 costs is what has changed of it.
func TestAMemberIsJudgedOnce(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(3).Strategy("Recreate").Obj()
	a, b, c := of(pool, v2, "a").Obj(), of(pool, v2, "b").Obj(), of(pool, v2, "c").Obj()
	d := of(pool, v2, "d").Created(now.Add(-time.Minute)).Obj()
	onNode := func(node string) *unstructured.Unstructured { return builders.MakePod(b).Stored(node).Obj() }
	bound := builders.SandboxFrom(b).NoLabel(builders.LabelPool).Obj()
	cases := map[string]struct {
		template  *unstructured.Unstructured
		put, drop []*unstructured.Unstructured
		members   []string
		judged    []string
	}{
		"nothing":           {v2, nil, nil, []string{"a", "b", "c"}, nil},
		"another version":   {v2, []*unstructured.Unstructured{builders.SandboxFrom(b).Ready(false).Obj()}, nil, []string{"a", "b", "c"}, []string{"b"}},
		"another pod":       {v2, []*unstructured.Unstructured{onNode("node-2")}, nil, []string{"a", "b", "c"}, []string{"b"}},
		"one goes":          {v2, nil, []*unstructured.Unstructured{a}, []string{"b", "c"}, nil},
		"one comes":         {v2, []*unstructured.Unstructured{d}, nil, []string{"a", "b", "c", "d"}, []string{"d"}},
		"one for another":   {v2, []*unstructured.Unstructured{d}, []*unstructured.Unstructured{a}, []string{"b", "c", "d"}, []string{"d"}},
		"a claim takes one": {v2, []*unstructured.Unstructured{bound}, nil, []string{"a", "c"}, nil},
		"another template":  {v1, nil, nil, []string{"a", "b", "c"}, []string{"a", "b", "c"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, history{v2, v1}, pool, v2)
			put, drop := storeOf(t, r)
			put(a, b, c, onNode("node-1"))
			m := r.record(client.ObjectKeyFromObject(pool), pool.GetUID())
			before, err := r.look(t.Context(), m, pool, v2)
			if err != nil {
				t.Fatal(err)
			}
			for i := range before.Members {
				m.roster.states[i].Class = judgedBefore
			}
			put(tc.put...)
			drop(tc.drop...)
			s, err := r.look(t.Context(), m, pool, tc.template)
			if err != nil {
				t.Fatal(err)
			}
			var are, judged []string
			for i, member := range s.members {
				are = append(are, member.Name)
				if s.Members[i].Class != judgedBefore {
					judged = append(judged, member.Name)
				}
			}
			if diff := cmp.Diff(tc.members, are); diff != "" {
				t.Errorf("members (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.judged, judged); diff != "" {
				t.Errorf("judged (-want,+got):\n%s", diff)
			}
		})
	}
}

// A pool at rest is planned again as soon as another plan could come to something
// else, and not before.
func TestWhenAPoolRests(t *testing.T) {
	annotated := func(pool *unstructured.Unstructured) *unstructured.Unstructured {
		u := builders.PoolFrom(pool).Annotation("freshbind.dev/paused", "true").Obj()
		u.SetResourceVersion("another")
		return u
	}
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Obj()
	a, b := of(pool, v2, "a").Obj(), of(pool, v2, "b").Obj()
	stamped := func() *builders.Pod { return builders.MakePod(b).Stored("node-1") }
	type change struct {
		put         []*unstructured.Unstructured
		pool        *unstructured.Unstructured
		template    *unstructured.Unstructured
		settle      func(s *poolState, m *poolRecord, plan *freshness.Plan)
		again, late time.Duration
	}
	cases := map[string]struct {
		change
		want bool
	}{
		"nothing changed":                 {change{}, true},
		"a pod elsewhere":                 {change{put: []*unstructured.Unstructured{builders.MakePod(b).Stored("node-2").Obj()}}, true},
		"a member that nothing became of": {change{put: []*unstructured.Unstructured{builders.SandboxFrom(b).RV(77).Obj()}}, true},
		"a member that is not ready":      {change{put: []*unstructured.Unstructured{builders.SandboxFrom(b).Ready(false).Obj()}}, false},
		"another member":                  {change{put: []*unstructured.Unstructured{of(pool, v2, "c").Obj()}}, false},
		"a pod in doubt":                  {change{put: []*unstructured.Unstructured{stamped().Label(settings.StampKey, "v1-old").Obj()}}, false},
		"a pod that somebody was in":      {change{put: []*unstructured.Unstructured{stamped().Set([]any{map[string]any{"name": "debugger", "image": "b"}}, "spec", "ephemeralContainers").Obj()}}, false},
		"the pool says something else":    {change{pool: annotated(pool)}, false},
		"another template":                {change{template: v1}, false},
		"later, for ever":                 {change{late: time.Hour}, true},
		"later, not yet":                  {change{again: time.Minute, late: time.Minute - 1}, true},
		"later, then":                     {change{again: time.Minute, late: time.Minute}, false},
		"a delete":                        {change{settle: func(_ *poolState, _ *poolRecord, p *freshness.Plan) { p.Delete = []int{0} }}, false},
		"a member to hide":                {change{settle: func(_ *poolState, _ *poolRecord, p *freshness.Plan) { p.Hide = []int{0} }}, false},
		"members that wait":               {change{settle: func(_ *poolState, _ *poolRecord, p *freshness.Plan) { p.Waiting = 1 }}, false},
		"members to be replaced": {change{settle: func(_ *poolState, _ *poolRecord, p *freshness.Plan) {
			p.Rollout.Replacing = freshness.Replacements{{Deleted: 1}}
		}}, false},
		"not complete":                {change{settle: func(_ *poolState, _ *poolRecord, p *freshness.Plan) { p.Rollout.State = freshness.Failed }}, false},
		"a delete that is unseen":     {change{settle: func(_ *poolState, m *poolRecord, _ *freshness.Plan) { m.leaving["x"] = true }}, false},
		"a member that waits":         {change{settle: func(_ *poolState, m *poolRecord, _ *freshness.Plan) { m.failures["x"] = backoff{} }}, false},
		"a member was onDrainingNode": {change{settle: func(_ *poolState, m *poolRecord, _ *freshness.Plan) { m.onDrainingNode["x"] = true }}, false},
		"words not seen yet":          {change{settle: func(s *poolState, m *poolRecord, _ *freshness.Plan) { m.writtenAt = s.Now }}, false},
		"words withheld":              {change{settle: func(s *poolState, _ *poolRecord, _ *freshness.Plan) { s.withheld = true }}, false},
		"bare pods":                   {change{settle: func(s *poolState, _ *poolRecord, _ *freshness.Plan) { s.bare = true }}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, history{v2, v1}, pool, v2)
			put, _ := storeOf(t, r)
			put(a, b, stamped().Obj())
			m := r.record(client.ObjectKeyFromObject(pool), pool.GetUID())
			m.onDrainingNode = map[types.UID]bool{}
			s, err := r.look(t.Context(), m, pool, v2)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := r.plan(t.Context(), m, s)
			if err != nil {
				t.Fatal(err)
			}
			m.rollout = plan.Rollout
			if tc.settle != nil {
				tc.settle(s, m, &plan)
			}
			m.settle(s, plan, tc.again)
			put(tc.put...)
			r.clock.SetTime(now.Add(tc.late))
			is, template := pool, v2
			if tc.pool != nil {
				is = tc.pool
			}
			if tc.template != nil {
				template = tc.template
			}
			s, err = r.look(t.Context(), m, is, template)
			if err != nil {
				t.Fatal(err)
			}
			got := m.rests(s)
			if got != tc.want {
				t.Errorf("rests: %t, want %t", got, tc.want)
			}
			if got && !m.rollout.Fresh.Equal(s.Now) {
				t.Errorf("a fresh member was last seen at %s, want %s", m.rollout.Fresh, s.Now)
			}
		})
	}
}

// An event that changes nothing costs no plan: what a plan would come to by now says
// so.
func TestAPoolAtRestIsNotPlanned(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).Strategy("Recreate").Obj()
	r := newHarness(t, history{v2}, pool, v2, of(pool, v2, "a").Obj())
	put, _ := storeOf(t, r)
	stored := object(poolKinds.Sandboxes)
	if err := r.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, stored); err != nil {
		t.Fatal(err)
	}
	put(stored)
	r.step(pool)
	r.clock.SetTime(now.Add(countsEvery))
	r.step(pool)
	m := r.records[client.ObjectKeyFromObject(pool)]
	m.rollout.State = freshness.Failed
	if r.step(pool); m.rollout.State != freshness.Failed {
		t.Errorf("it was planned though nothing has changed, and is %s", m.rollout.State)
	}
	put(builders.SandboxFrom(stored).RV(77).Ready(false).Obj())
	if r.step(pool); m.rollout.State == freshness.Failed {
		t.Error("it was not planned though a member is not ready any more")
	}
}

func TestWhatACacheShows(t *testing.T) {
	pool := builders.MakePool("ns", "python").Obj()
	uid := pool.GetUID()
	cases := map[string]struct {
		shown, listed map[string]int64
		want          bool
	}{
		"the same":         {map[string]int64{"a": 5}, map[string]int64{"a": 5}, true},
		"a newer version":  {map[string]int64{"a": 12}, map[string]int64{"a": 5}, true},
		"an older version": {map[string]int64{"a": 5}, map[string]int64{"a": 6}, false},
		"one is not shown": {map[string]int64{"a": 5}, map[string]int64{"a": 5, "b": 6}, false},
		"one is gone":      {map[string]int64{"a": 5, "b": 6}, map[string]int64{"a": 5}, false},
		"one is younger":   {map[string]int64{"a": 5, "b": 11}, map[string]int64{"a": 5}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, nil)
			put, _ := storeOf(t, r)
			for name, rv := range tc.shown {
				put(of(pool, v1, name).UID(name).RV(rv).Obj())
			}
			l := &listing{at: "10", members: map[types.UID]map[types.UID]string{uid: {}}}
			for name, rv := range tc.listed {
				l.members[uid][types.UID(name)] = strconv.FormatInt(rv, 10)
			}
			if got := r.view.shows(pool, l); got != tc.want {
				t.Errorf("shows: %t, want %t", got, tc.want)
			}
		})
	}
}
