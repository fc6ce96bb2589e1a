package pools

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func TestMembersAreOfferedWhenTheirTemplateReturns(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("OnReplenish").Obj()
	r := newHarness(t, nil, append(ofAll(pool, v1, 2), pool, v1)...)
	r.step(pool)
	if noted := r.noted(); len(noted) > 0 {
		t.Fatalf("offered %v before anything changed", noted)
	}
	back := object(poolKinds.Templates)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(v1), back); err != nil {
		t.Fatal(err)
	}
	back.SetGeneration(3)
	if err := r.client.Update(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct {
		after time.Duration
		want  []string
	}{
		{0, nil}, {offers[0], []string{"m00", "m01"}}, {offers[0] + time.Second, nil}, {offers[1], []string{"m00", "m01"}}, {time.Hour, nil},
	} {
		r.clock.SetTime(now.Add(tc.after))
		r.step(pool)
		if diff := cmp.Diff(tc.want, r.noted()); diff != "" {
			t.Errorf("step %d, %s after the change (-want,+got):\n%s", i, tc.after, diff)
		}
	}
}

// Whoever takes the outcome off a pool gets it back.
func TestTheOutcomeIsPutRight(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).Strategy("OnReplenish").Obj()
	r := newHarness(t, nil, append(ofAll(pool, v1, 1), pool, v1)...)
	r.step(pool)
	bare := object(poolKinds.Pools)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(pool), bare); err != nil {
		t.Fatal(err)
	}
	bare.SetAnnotations(nil)
	if err := r.client.Update(t.Context(), bare); err != nil {
		t.Fatal(err)
	}
	r.clock.SetTime(now.Add(readBack))
	r.step(pool)
	if got := r.annotation(pool, settings.RolloutStateKey); got != "Complete" {
		t.Errorf("state %q, want Complete again", got)
	}
}

// A pool that is looked at late has to be looked at again all the same.
func TestAPoolSeenLateIsNotForgotten(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("OnReplenish").Obj()
	r := newHarness(t, nil, append(ofAll(pool, v1, 2), pool, v1)...)
	r.step(pool)
	m := r.records[client.ObjectKeyFromObject(pool)]
	m.changed = now
	r.clock.SetTime(now.Add(time.Hour))
	_, again := r.step(pool)
	if again <= 0 {
		t.Errorf("comes back after %s, want soon", again)
	}
	r.clock.SetTime(r.clock.Now().Add(again))
	r.step(pool)
	if m.offered != len(offers) {
		t.Errorf("offered %d times, want %d", m.offered, len(offers))
	}
}

// A webhook that adds a field to every member makes all of them unknown; to
// replace them would only make more.
func TestAttributionIsSuspended(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Obj()
	foreign := func(name string, at time.Time) *unstructured.Unstructured {
		return of(pool, v2, name).PodSpec("kata", "runtimeClassName").Created(at).
			Annotation(settings.CreatedByKey, settings.CreatedByPool).Obj()
	}
	r := newHarness(t, history{v1, v2}, pool, v2, foreign("a", now.Add(-time.Hour)), foreign("b", now.Add(-time.Hour)))
	if writes, _ := r.step(pool); len(writes) != 2 {
		t.Fatalf("first %v, want two deletes", writes)
	}
	for _, name := range []string{"c", "d"} {
		if err := r.client.Create(t.Context(), foreign(name, now.Add(time.Minute))); err != nil {
			t.Fatal(err)
		}
	}
	r.clock.SetTime(now.Add(2 * time.Minute))
	if writes, _ := r.step(pool); len(writes) > 0 {
		t.Errorf("then %v, want attribution suspended", writes)
	}
	if got, want := r.annotation(pool, settings.AttributionKey), r.annotation(pool, settings.RolloutRevisionKey); got != want || want == "" {
		t.Errorf("%s is %q, want the revision in force, %q", settings.AttributionKey, got, want)
	}
	status, err := platform.ParseRolloutStatus(r.annotation(pool, settings.RolloutStatusKey))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range status.Conditions {
		found = found || c.Type == platform.ConditionAttributionSuspended && c.Status == "True" &&
			strings.HasSuffix(c.Message, "template; if these fields are meant to be there, set "+settings.InjectedPathsKey+": podTemplate.spec.runtimeClassName")
	}
	if !found {
		t.Errorf("no condition names the path to copy: %+v", status.Conditions)
	}
}

// A tenant's template can differ in any number of fields, and have names of any length.
func TestWhatSuspensionSaysIsBounded(t *testing.T) {
	s := &poolState{}
	for i := range 100 {
		root := fmt.Sprintf("podTemplate.spec.containers[name=c].env[name=%03d]", i)
		s.differences = append(s.differences, revision.Difference{Root: root, Got: "1"}, revision.Difference{Root: root, Got: "1"}, revision.Difference{Root: root + ".x"})
	}
	got := suspension(s)
	for _, want := range []string{"injected-paths: podTemplate.spec.containers[name=c].env[name=000],podTemplate", "env[name=006] and 93 more", "of the template: podTemplate.spec.containers[name=c].env[name=000].x,"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q: %s", want, got)
		}
	}
	s.differences = []revision.Difference{{Root: strings.Repeat("x", 1024), Got: "1"}}
	if long := suspension(s); len(got) > 1024 || !strings.HasSuffix(long, ": 1, too long to be listed") {
		t.Errorf("%d bytes, and then %s", len(got), long)
	}
}

// Nothing but what they are now can have made members of a pool and a template that nobody
// ever edited. Where a platform's own controller replaces them, no younger ones would come.
func TestAttributionOfAPoolThatIsNew(t *testing.T) {
	for name, tc := range map[string]struct {
		pool, template int64
		restarted      bool
		older          time.Duration
		want           bool
	}{
		"nobody edited anything":           {pool: 1, template: 1, want: true},
		"the template was edited":          {pool: 1, template: 2},
		"the pool was edited":              {pool: 2, template: 1},
		"its members are to be born again": {pool: 1, template: 1, restarted: true},
		"they are older than the template": {pool: 1, template: 1, older: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			born := now.Add(-time.Hour)
			template := builders.TemplateFrom(v2).PodSpec("x", "hostnam").Set(tc.template, "metadata", "generation").Obj()
			template.SetCreationTimestamp(metav1.NewTime(born))
			pool := builders.MakePool("ns", "python").Replicas(2).Strategy("OnReplenish").Set(tc.pool, "metadata", "generation").Obj()
			pool.SetCreationTimestamp(metav1.NewTime(born.Add(-time.Minute)))
			if tc.restarted {
				pool.SetAnnotations(map[string]string{settings.RestartedAtKey: born.Add(-time.Minute).Format(time.RFC3339)})
			}
			objs := []*unstructured.Unstructured{pool, template}
			for _, name := range []string{"a", "b"} {
				objs = append(objs, builders.MakeMember(pool, v2).Name(name).Created(born.Add(-tc.older)).Annotation(settings.CreatedByKey, settings.CreatedByPool).Obj())
			}
			r := newHarness(t, history{template}, objs...)
			r.step(pool)
			if got := r.annotation(pool, settings.AttributionKey) != ""; got != tc.want {
				t.Errorf("attribution is suspended: %t, want %t", got, tc.want)
			}
			const named = `template; they lack these fields of the template: podTemplate.spec.hostnam"`
			if status := r.annotation(pool, settings.RolloutStatusKey); tc.want && !strings.Contains(status, named) {
				t.Errorf("the status does not name the field: %s", status)
			}
		})
	}
}

func TestANewLeaderGoesOnWithARollout(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("OnReplenish").
		Annotation("freshbind.dev/rollout-strategy", "RollingUpdate").Annotation("freshbind.dev/progress-deadline", "1m").Obj()
	r := newHarness(t, nil, pool, v2, of(pool, v1, "a").Obj(), builders.SandboxFrom(of(pool, v2, "b").Obj()).Ready(false).Obj())
	r.step(pool)
	if got := r.annotation(pool, settings.RolloutStateKey); got != "Progressing" {
		t.Fatalf("state %q, want Progressing", got)
	}
	r.records = map[types.NamespacedName]*poolRecord{}
	r.clock.SetTime(now.Add(2 * time.Minute))
	r.step(pool)
	if got := r.annotation(pool, settings.RolloutStateKey); got != "Failed" {
		t.Errorf("state %q, want Failed: the deadline does not begin anew", got)
	}
}

// A cache without a fresh member may be old: claims are given stale members only
// when the store has no fresh one either.
func TestStaleMembersAreServedOnlyWhenThereIsNoFreshOne(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("OnReplenish").
		Annotation("freshbind.dev/rollout-strategy", "RollingUpdate").Obj()
	seen := []*unstructured.Unstructured{pool, v2, of(pool, v1, "a").Obj(), of(pool, v1, "b").Obj()}
	r := newHarness(t, nil, seen...)
	stored := newHarness(t, nil, append(seen, of(pool, v2, "unseen").Obj())...)
	r.view.lists = stored.client
	admit := func(at time.Duration) string {
		r.clock.SetTime(now.Add(at))
		r.step(pool)
		return r.annotation(pool, settings.AdmitKey)
	}
	// The controller has proven its view before it fell behind.
	r.record(client.ObjectKeyFromObject(pool), pool.GetUID()).proven = true
	for i := range 4 {
		at := time.Duration(2*i) * time.Second
		if got := admit(at); got != "fresh" {
			t.Errorf("after %s, with a fresh member unseen: admit %q, want fresh", at, got)
		}
	}
	r.view.lists = r.client
	if got := admit(time.Minute); got != "any" {
		t.Errorf("with no fresh member at all: admit %q, want any", got)
	}
}

// hidesFirst is a platform of which members are hidden for a while before they are deleted.
type hidesFirst struct {
	Objects
	first time.Duration
}

func (p hidesFirst) Pool(pool *unstructured.Unstructured) platform.Pool {
	is := p.Objects.Pool(pool)
	is.HiddenFirst = p.first
	return is
}

// Since when a member is hidden nothing tells that is stored: it counts from when it is
// seen, and goes on when the template is edited once more, which has all members judged anew.
func TestMembersAreHiddenBeforeTheyGo(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Annotation(settings.StrategyKey, "Recreate").Obj()
	r := newHarness(t, history{v2, v1}, append(ofAll(pool, v1, 2), pool, v2)...)
	r.view.objects = hidesFirst{r.view.objects, 2 * time.Second}
	step := func(after, wantAgain time.Duration, want ...string) {
		t.Helper()
		r.clock.SetTime(r.clock.Now().Add(after))
		writes, again := r.step(pool)
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		if wantAgain > 0 && again != wantAgain {
			t.Errorf("again after %s, want %s", again, wantAgain)
		}
	}
	step(0, 0, "hide m00", "hide m01")
	step(time.Minute, 2*time.Second)
	var v3 unstructured.Unstructured
	v3.SetGroupVersionKind(poolKinds.Templates)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(v2), &v3); err != nil {
		t.Fatal(err)
	}
	v3.Object["spec"] = builders.MakeTemplate("ns", "python").Image("sandbox:v3").Obj().Object["spec"]
	v3.SetGeneration(3)
	if err := r.client.Update(t.Context(), &v3); err != nil {
		t.Fatal(err)
	}
	step(1500*time.Millisecond, 500*time.Millisecond)
	step(500*time.Millisecond, 0, "delete m00", "delete m01")
	if m := r.records[client.ObjectKeyFromObject(pool)]; len(m.hidden) != 2 {
		t.Errorf("remembers %d hidden members, want 2", len(m.hidden))
	}
	step(time.Second, 0)
	if m := r.records[client.ObjectKeyFromObject(pool)]; len(m.hidden) != 0 {
		t.Errorf("remembers %d members that are gone", len(m.hidden))
	}
}
