package pools

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func TestKeepingAPoolCurrent(t *testing.T) {
	poolOf := func(strategy string) *builders.Pool {
		return builders.MakePool("ns", "python").Replicas(3).Strategy(strategy)
	}
	recreate, keep := poolOf("Recreate").Obj(), poolOf("OnReplenish").Obj()
	rolling := builders.PoolFrom(keep).Annotation("freshbind.dev/rollout-strategy", "RollingUpdate").Obj()
	byAnnotation := builders.PoolFrom(keep).Annotation("freshbind.dev/rollout-strategy", "Recreate").Obj()
	other := builders.MakeTemplate("ns", "other").Image("sandbox:v2").Obj()
	switched := builders.PoolFrom(keep).Template("other").Obj()
	restarted := builders.PoolFrom(recreate).Annotation("freshbind.dev/restarted-at", "2026-01-01T11:30:00Z").Obj()
	node := func(taint bool) *unstructured.Unstructured {
		n := object(nodeKind)
		n.SetName("node-1")
		if taint {
			n.Object["spec"] = map[string]any{"taints": []any{map[string]any{"key": "gone", "effect": "NoExecute"}}}
		}
		return n
	}
	on := func(member *unstructured.Unstructured) *unstructured.Unstructured {
		return builders.MakePod(member).Label(settings.StampKey, revisionOf(t, v2)).Stored("node-1").Obj()
	}
	type want struct {
		Writes []string
		Noted  []string
		State  string
		Admit  string
	}
	cases := map[string]struct {
		pool *unstructured.Unstructured
		objs []*unstructured.Unstructured
		want want
	}{
		"nothing to do": {recreate, append(ofAll(recreate, v2, 3), v2), want{State: "Complete"}},
		"recreate": {
			recreate, []*unstructured.Unstructured{v2, of(recreate, v1, "a").Obj(), of(recreate, v2, "b").Obj(), of(recreate, v1, "c").Obj()},
			want{Writes: []string{"delete a", "delete c"}, State: "Progressing"},
		},
		"recreate by annotation": {
			byAnnotation, append(ofAll(keep, v1, 2), v2), want{Writes: []string{"delete m00", "delete m01"}, State: "Progressing"},
		},
		"on replenish": {keep, append(ofAll(keep, v1, 3), v2), want{State: "Progressing"}},
		"pool switched to another template: under every strategy": {
			switched, append(ofAll(keep, v2, 2), v2, other), want{Writes: []string{"delete m00", "delete m01"}, State: "Progressing"},
		},
		"used before": {
			keep, []*unstructured.Unstructured{v2, of(keep, v2, "used").Annotation(settings.BoundToKey, "x").Obj()},
			want{Writes: []string{"delete used"}, State: "Progressing"},
		},
		"rolling: a step": {
			rolling, []*unstructured.Unstructured{v2, of(keep, v1, "a").Obj(), of(keep, v1, "b").Obj(), of(keep, v2, "c").Obj()},
			want{Writes: []string{"delete a", "hide b"}, State: "Progressing", Admit: "fresh"},
		},
		"restarted": {restarted, append(ofAll(recreate, v2, 1), v2), want{Writes: []string{"delete m00"}, State: "Progressing"}},
		"restarted later": {
			builders.PoolFrom(recreate).Annotation("freshbind.dev/restarted-at", "2100-01-01T00:00:00Z").Obj(), append(ofAll(recreate, v2, 3), v2),
			want{State: "Complete"},
		},
		"template gone": {recreate, ofAll(recreate, v1, 2), want{}},
		"being deleted": {recreate, []*unstructured.Unstructured{v2, of(recreate, v1, "a").Set([]any{"x/y"}, "metadata", "finalizers").Deleting(now).Obj()}, want{State: "Progressing"}},
		"on a node that leaves": {
			keep, []*unstructured.Unstructured{v2, of(keep, v2, "a").Obj(), on(of(keep, v2, "a").Obj()), node(true)},
			want{Noted: []string{"a"}, State: "Progressing"},
		},
		"on a node that stays": {
			keep, []*unstructured.Unstructured{v2, of(keep, v2, "a").Obj(), on(of(keep, v2, "a").Obj()), node(false)}, want{State: "Progressing"},
		},
		"another pool's": {
			recreate, []*unstructured.Unstructured{v2, of(builders.MakePool("ns", "python").UID("another").Obj(), v1, "a").Obj()}, want{State: "Progressing"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, history{v1, v2}, append(tc.objs, tc.pool)...)
			writes, _ := r.step(tc.pool)
			got := want{writes, r.noted(), r.annotation(tc.pool, settings.RolloutStateKey), r.annotation(tc.pool, settings.AdmitKey)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if again, _ := r.step(tc.pool); len(again) > 0 {
				t.Errorf("written once more: %v", again)
			}
			if slices.Contains(r.writes, "publish "+tc.pool.GetName()) && len(tc.want.Writes) == 0 {
				t.Errorf("the outcome is written again although nothing changed")
			}
		})
	}
}

// Policies hold by what members carry. A cache that is late loosens nothing.
func TestMembersOfAPoolThatReturnsToAudit(t *testing.T) {
	enforcing := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Annotation(settings.EnforcementKey, string(settings.Enforce)).Obj()
	audited := builders.PoolFrom(enforcing).Annotation(settings.EnforcementKey, "audit").Obj()
	member := of(audited, v2, "a").Label(settings.EnforcementKey, string(settings.Enforce)).Obj()
	pod := builders.MakePod(member).Label(settings.EnforcementKey, string(settings.Enforce)).Obj()
	byPool := func(_ context.Context, _, enforcement string) (bool, error) {
		return enforcement == string(settings.Enforce), nil
	}
	cases := map[string]struct {
		stored *unstructured.Unstructured
		leads  bool
		want   map[string]string
	}{
		"audited by now":          {audited, true, map[string]string{"Sandbox": "", "Pod": ""}},
		"enforced, as is stored":  {enforcing, true, map[string]string{"Sandbox": string(settings.Enforce), "Pod": string(settings.Enforce)}},
		"another leads meanwhile": {audited, false, map[string]string{"Sandbox": string(settings.Enforce), "Pod": string(settings.Enforce)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, nil, audited, v2, member, pod)
			stored := newHarness(t, nil, tc.stored, v2)
			r.platform.(*inForce).stored = stored.client
			r.enforced, r.enforcedNow, r.leads = byPool, byPool, func() bool { return tc.leads }
			_, _ = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(audited)})
			got := map[string]string{}
			for _, kind := range []schema.GroupVersionKind{poolKinds.Sandboxes, podKind} {
				u := object(kind)
				if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(member), u); err != nil {
					t.Fatal(err)
				}
				got[kind.Kind] = u.GetLabels()[settings.EnforcementKey]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("marks (-want,+got):\n%s", diff)
			}
			if tc.leads && tc.want["Pod"] == "" {
				if r.step(audited); len(r.writes) > 0 {
					t.Errorf("written once more: %v", r.writes)
				}
			}
		})
	}
}

func TestNothingIsDoneForAPool(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Obj()
	stale := of(pool, v1, "a").Obj()
	t.Run("in mode audit", func(t *testing.T) {
		r := newHarness(t, nil, pool, v2, stale)
		r.enforced = func(context.Context, string, string) (bool, error) { return false, nil }
		if _, _ = r.step(pool); len(r.writes) > 0 {
			t.Errorf("wrote %v", r.writes)
		}
	})
	t.Run("while the cache lacks a member", func(t *testing.T) {
		r := newHarness(t, nil, pool, v2, stale)
		all := newHarness(t, nil, pool, v2, stale, of(pool, v1, "b").Obj())
		r.view.lists = all.client
		_, again := r.step(pool)
		if diff := cmp.Diff(settling, again); diff != "" || len(r.writes) > 0 {
			t.Errorf("wrote %v, comes back after (-want,+got):\n%s", r.writes, diff)
		}
		if _, again = r.step(pool); again != 2*settling {
			t.Errorf("comes back after %s the second time, want %s", again, 2*settling)
		}
		r.view.lists = r.client
		r.clock.SetTime(now.Add(listingKept))
		if writes, _ := r.step(pool); len(writes) != 1 {
			t.Errorf("once it is proven: %v, want one delete", writes)
		}
	})
	t.Run("while the cache shows a member that is gone", func(t *testing.T) {
		r := newHarness(t, nil, pool, v2, stale, of(pool, v1, "b").Obj())
		all := newHarness(t, nil, pool, v2, stale)
		r.view.lists = later{all.client}
		if _, _ = r.step(pool); len(r.writes) > 0 {
			t.Errorf("wrote %v", r.writes)
		}
	})
	t.Run("whose template is not what the cache shows", func(t *testing.T) {
		r := newHarness(t, nil, pool, v2, stale)
		stored := newHarness(t, nil, pool, v1, stale)
		r.platform = stored.platform
		if writes, _ := r.step(pool); len(writes) > 0 {
			t.Errorf("wrote %v", writes)
		}
	})
}

// later is a list that is younger than everything in the cache.
type later struct{ client.Reader }

func (l later) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := l.Reader.List(ctx, list, opts...)
	list.SetResourceVersion("1000000")
	return err
}

// Nothing tells of the time of a restart but a clock.
func TestAPoolIsLookedAtWhenItsRestartIsDue(t *testing.T) {
	pool := builders.MakePool("ns", "python").Template("python").Replicas(1).Strategy("Recreate").Annotation("freshbind.dev/restarted-at", "2100-01-01T00:00:00Z").Obj()
	r := newHarness(t, history{v1}, pool, v1, of(pool, v1, "a").Obj())
	at := time.Date(2099, 12, 31, 23, 0, 0, 0, time.UTC)
	for _, want := range []time.Duration{time.Hour, 30 * time.Minute} {
		r.clock.SetTime(at)
		if _, again := r.step(pool); again != want {
			t.Errorf("comes back after %s, want %s", again, want)
		}
		at = at.Add(30 * time.Minute)
	}
}
