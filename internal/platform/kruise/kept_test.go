package kruise

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Only what nobody has, and nobody is about to have, is an idle member.
func TestWhatCachesKeepOfMembers(t *testing.T) {
	cases := map[string]struct {
		change       func(*unstructured.Unstructured)
		pooled, used bool
	}{
		"a member": {func(*unstructured.Unstructured) {}, true, false},
		"taken": {func(m *unstructured.Unstructured) {
			*m = *takenFor(m, "uid-c", "c")
		}, false, true},
		"claimed by its label": {func(m *unstructured.Unstructured) { set(m, yes, "metadata", "labels", claimedLabel) }, false, true},
		"claimed by its owner": {func(m *unstructured.Unstructured) { set(m, "uid-c", "metadata", "annotations", ownerAnnotation) }, false, true},
		"locked for deletion": {func(m *unstructured.Unstructured) {
			m.SetAnnotations(map[string]string{lockAnnotation: "a", ownerAnnotation: scaleDown})
		}, false, false},
		"not back yet":     {func(m *unstructured.Unstructured) { set(m, phaseRecycling, "status", "phase") }, false, false},
		"made by somebody": {func(m *unstructured.Unstructured) { m.SetOwnerReferences(nil) }, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newCluster().member
			tc.change(m)
			is := Objects{}.DescribeMember(m)
			if is.Pooled != tc.pooled || is.Used != tc.used || !is.Shown || is.Hideable != (is.Controller.Kind == freshness.OwnedByPool) {
				t.Errorf("it is %+v", is.MemberTraits)
			}
			if member, err := (Objects{}).AsMember(m); err != nil || member.Used != tc.used {
				t.Errorf("it is used: %t, want %t: %v", member.Used, tc.used, err)
			}
		})
	}
}

// Its Pod refuses to be evicted. Where it names its node, another one would come to be
// there.
func TestWhichMembersAreUnevictable(t *testing.T) {
	for node, want := range map[string]bool{"": true, "node-1": false} {
		m := newCluster().member
		if node != "" {
			set(m, node, "spec", "template", "spec", "nodeName")
		}
		if got := (Objects{}).DescribeMember(m).Unevictable; got != want {
			t.Errorf("on %q by its template it is unevictable: %t, want %t", node, got, want)
		}
	}
}

func TestReadySince(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	condition := func(kind, status string) []any {
		return []any{map[string]any{"type": "InPlaceUpdate", "status": "True"}, map[string]any{"type": kind, "status": status, "lastTransitionTime": at.Format(time.RFC3339)}}
	}
	cases := map[string]struct {
		phase      string
		conditions []any
		want       time.Time
	}{
		"ready":              {"Running", condition("Ready", "True"), at},
		"not ready":          {"Running", condition("Ready", "False"), time.Time{}},
		"nothing is said":    {"Running", nil, time.Time{}},
		"ready, and failed":  {"Failed", condition("Ready", "True"), time.Time{}},
		"ready, and pending": {"Pending", condition("Ready", "True"), time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newCluster().member
			m.Object["status"] = map[string]any{"phase": tc.phase, "conditions": tc.conditions}
			if got := (Objects{}).DescribeMember(m).ReadySince; !got.Equal(tc.want) {
				t.Errorf("it is ready since %s, want %s", got, tc.want)
			}
		})
	}
}

// A pool is rolled out in the way that its owner asks Freshbind for. Binds are judged
// strictly where nobody has asked.
func TestWhoRollsAPool(t *testing.T) {
	for annotation, want := range map[string]freshness.Strategy{
		"": freshness.PlatformOwned, "RollingUpdate": freshness.RollingUpdate, "Recreate": freshness.Recreate, "OnReplenish": freshness.OnReplenish,
		"in my way": freshness.Recreate,
	} {
		t.Run(annotation, func(t *testing.T) {
			c := newCluster()
			if annotation != "" {
				c.set().SetAnnotations(map[string]string{settings.StrategyKey: annotation})
			}
			wantPool := platform.Pool{Template: "pool", Replicas: 2, Withholds: annotation == "", HiddenFirst: hiddenFirst}
			if diff := cmp.Diff(wantPool, (Objects{}).Pool(c.set())); diff != "" {
				t.Errorf("pool (-want +got):\n%s", diff)
			}
			i, err := c.platform().Inspect(t.Context(), c.set(), c.set())
			if err != nil || i.Strategy() != want || i.Revision() == "" {
				t.Fatalf("the strategy is %s, want %s: %v", i.Strategy(), want, err)
			}
			f, err := c.platform().Snapshot(t.Context(), platform.Write{Operation: freshness.Idle, New: c.member})
			if want == freshness.PlatformOwned {
				want = freshness.Recreate
			}
			if err != nil || f.Pool.Strategy != want {
				t.Errorf("binds are judged by %s, want %s: %v", f.Pool.Strategy, want, err)
			}
		})
	}
}

func TestMembersAreComparedWithTheirSet(t *testing.T) {
	c := newCluster()
	reducer := platform.NewReducer(Objects{})
	inspect := func(m *unstructured.Unstructured) freshness.Class {
		t.Helper()
		i, err := c.platform().Inspect(t.Context(), c.set(), c.set())
		if err != nil {
			t.Fatal(err)
		}
		j, err := i.Member(t.Context(), reducer.Member(m, nil))
		if err != nil {
			t.Fatal(err)
		}
		return j.Class
	}
	if got := inspect(c.member); got != freshness.Current {
		t.Errorf("a fresh member is %s", got)
	}
	c.edited(c.set(), func(s *unstructured.Unstructured) { s.Object["spec"].(map[string]any)["template"] = podTemplate(newer) })
	if got := inspect(c.member); got != freshness.Stale {
		t.Errorf("a member of an older revision is %s", got)
	}

	// What a SandboxTemplate of that name, or a SandboxSet, says is not what runs.
	c.set().Object["spec"] = map[string]any{"templateRef": map[string]any{"name": "pool"}}
	i, err := c.platform().Inspect(t.Context(), c.set(), c.set())
	if err != nil || i.Revision() != "" {
		t.Errorf("members that refer to a template are compared with %q: %v", i.Revision(), err)
	}
}

// An idle member is judged by its own faults: nobody takes it, and its pool has it.
func TestIdleMembers(t *testing.T) {
	cases := map[string]struct {
		change func(*cluster)
		want   freshness.Reason
	}{
		"fresh":                 {func(*cluster) {}, freshness.Fresh},
		"its pod has ended":     {func(c *cluster) { set(c.pod(), "Failed", "status", "phase") }, freshness.PodFinished},
		"used":                  {func(c *cluster) { set(c.member, int64(1), "status", "recycledCount") }, freshness.MemberUsed},
		"used, and may be":      {func(c *cluster) { set(c.member, int64(1), "status", "recycledCount"); recycling(c.set()) }, freshness.Fresh},
		"not back yet":          {func(c *cluster) { set(c.member, phaseRecycling, "status", "phase") }, freshness.Fresh},
		"of another SandboxSet": {func(c *cluster) { c.set().SetUID("another") }, freshness.PoolGone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			tc.change(c)
			f, err := c.platform().Snapshot(t.Context(), platform.Write{Operation: freshness.Idle, New: c.member})
			if err != nil {
				t.Fatal(err)
			}
			if got := freshness.Judge(f.Snapshot); got.Reason != tc.want {
				t.Errorf("the verdict is %s, want %s: %s", got.Reason, tc.want, got.Detail)
			}
		})
	}
}

// What somebody had goes back to its pool if that wants it and the next one could be given
// it, and only once who had it has let go.
func TestReturns(t *testing.T) {
	asked := func(c *cluster) { recycling(c.set()) }
	cases := map[string]struct {
		change func(c *cluster, had *unstructured.Unstructured)
		want   freshness.Reason
		// lost: nobody can have it any more.
		lost bool
	}{
		"the pool recycles": {func(c *cluster, _ *unstructured.Unstructured) { asked(c) }, freshness.Fresh, false},
		"it does not":       {func(*cluster, *unstructured.Unstructured) {}, freshness.MemberUsed, true},
		"only the member says so": {func(_ *cluster, had *unstructured.Unstructured) {
			set(had, yes, "metadata", "annotations", cleanupAnnotation)
		}, freshness.MemberUsed, true},
		"somebody has it": {func(c *cluster, had *unstructured.Unstructured) {
			asked(c)
			set(had, "Running", "status", "phase")
		}, freshness.MemberClaimed, false},
		"edited meanwhile": {func(c *cluster, _ *unstructured.Unstructured) {
			asked(c)
			c.edited(c.set(), func(s *unstructured.Unstructured) { container(s)["image"] = newer })
		}, freshness.StaleRevision, true},
		"changed by whoever had it": {func(c *cluster, had *unstructured.Unstructured) {
			asked(c)
			container(had)["image"] = newer
		}, freshness.UnknownRevision, true},
		"its pod changed": {func(c *cluster, _ *unstructured.Unstructured) {
			asked(c)
			container(c.pod())["image"] = newer
		}, freshness.UnknownRevision, true},
		"somebody worked in its pod": {func(c *cluster, _ *unstructured.Unstructured) {
			asked(c)
			set(c.pod(), []any{map[string]any{"name": "debug", "image": image}}, "spec", "ephemeralContainers")
		}, freshness.PodModified, true},
		"its pod has ended": {func(c *cluster, _ *unstructured.Unstructured) {
			asked(c)
			set(c.pod(), "Failed", "status", "phase")
		}, freshness.PodFinished, true},
		"being deleted": {func(c *cluster, had *unstructured.Unstructured) {
			asked(c)
			now := metav1.Now()
			had.SetDeletionTimestamp(&now)
		}, freshness.MemberTerminating, true},
		"its pool is gone": {func(c *cluster, _ *unstructured.Unstructured) { delete(c.objs, Sets.Resource+"/pool") }, freshness.PoolGone, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			had := c.written
			had.SetGeneration(3)
			set(had, phaseRecycling, "status", "phase")
			tc.change(c, had)
			back := had.DeepCopy()
			back.SetOwnerReferences(c.member.GetOwnerReferences())
			back.SetLabels(c.member.GetLabels())
			back.SetAnnotations(nil)
			// As it is asked about, and as it is stored for whoever settles what was refused.
			for _, w := range []platform.Write{{Operation: freshness.Return, Old: had, New: back}, {Operation: freshness.Return, New: had}} {
				f, err := c.platform().Snapshot(t.Context(), w)
				if err != nil {
					t.Fatal(err)
				}
				got := freshness.Judge(f.Snapshot)
				if got.Reason != tc.want {
					t.Errorf("the verdict is %s, want %s: %s", got.Reason, tc.want, got.Detail)
				}
				if lost := !got.Allowed && got.Reason.Fault() == freshness.FaultMember && f.Member.Controller.Kind == freshness.OwnedByPool; lost != tc.lost {
					t.Errorf("nobody can have it any more: %t, want %t", lost, tc.lost)
				}
			}
		})
	}
}

// What is given back is what was judged.
func TestAReturnChangesNothingElse(t *testing.T) {
	c := newCluster()
	recycling(c.set())
	had := c.written
	set(had, phaseRecycling, "status", "phase")
	back := had.DeepCopy()
	back.SetOwnerReferences(c.member.GetOwnerReferences())
	set(back, "2028-01-01T00:00:00Z", "spec", "shutdownTime")
	container(back)["image"] = newer
	f, err := c.platform().Snapshot(t.Context(), platform.Write{Operation: freshness.Return, Old: had, New: back})
	if err != nil {
		t.Fatal(err)
	}
	if got := freshness.Judge(f.Snapshot); got.Reason != freshness.BlueprintChanged {
		t.Errorf("the verdict is %s: %s", got.Reason, got.Detail)
	}
	// To another pool of that name, nobody gives anything.
	back = had.DeepCopy()
	refs := c.member.DeepCopy().GetOwnerReferences()
	refs[0].UID = "another"
	back.SetOwnerReferences(refs)
	f, err = c.platform().Snapshot(t.Context(), platform.Write{Operation: freshness.Return, Old: had, New: back})
	if err != nil {
		t.Fatal(err)
	}
	if got := freshness.Judge(f.Snapshot); got.Reason != freshness.PoolGone {
		t.Errorf("to another pool: the verdict is %s: %s", got.Reason, got.Detail)
	}
}

func recycling(pool *unstructured.Unstructured) {
	pool.SetAnnotations(map[string]string{cleanupAnnotation: yes})
}

func TestWhoseAnObjectIs(t *testing.T) {
	c := newCluster()
	o := Objects{}
	pool, pod := metav1.GetControllerOf(c.member), metav1.GetControllerOf(c.pod())
	if !o.IsPool(pool) || o.IsMember(pool) || o.IsPool(pod) || !o.IsMember(pod) {
		t.Error("owners are mistaken for another kind")
	}
	if got := o.MemberOf(c.pod()); got != "m" {
		t.Errorf("the Pod is that of %q", got)
	}
	if got := o.MemberOf(c.member); got != "" {
		t.Errorf("a Sandbox is the Pod of %q", got)
	}
	if got := o.Claims(takenFor(c.member, "uid-c", "c")); len(got) != 1 || got[0].UID != "uid-c" || len(o.Claims(c.member)) != 0 {
		t.Errorf("claims are %v", got)
	}
	of := labels.Set(c.member.GetLabels())
	if !o.PooledMembers().Matches(of) || !o.MembersOf("pool").Matches(of) || o.MembersOf("other").Matches(of) {
		t.Errorf("labels %v select another pool", of)
	}
	if !o.MemberPods().Matches(labels.Set{createdByLabel: createdBySandbox}) || o.MemberPods().Matches(labels.Set{createdByLabel: "commit"}) {
		t.Error("Pods of others are selected")
	}
}
