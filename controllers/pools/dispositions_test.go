package pools

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// metadataOf serves the metadata of Sandboxes.
func metadataOf(r *harness) client.Reader {
	return interceptor.NewClient(r.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			u := object(poolKinds.Sandboxes)
			if err := c.Get(ctx, key, u); err != nil {
				return err
			}
			into := obj.(*metav1.PartialObjectMetadata)
			into.UID, into.OwnerReferences = u.GetUID(), u.GetOwnerReferences()
			return nil
		},
	})
}

// liveOf reads Sandboxes as they are stored.
func liveOf(r *harness) Live {
	return func(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
		u := object(poolKinds.Sandboxes)
		if err := r.client.Get(ctx, key, u); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return u, nil
	}
}

func (r *harness) dispositions(act bool) *Dispositions {
	return newDispositions(r.view, Options{
		Inspector: r.platform, BarePods: r.platform.(BarePodInspector), Live: liveOf(r),
		Enforced: func(context.Context, string, string) (bool, error) { return act, nil },
	}, metadataOf(r), r.clock)
}

func TestDispositions(t *testing.T) {
	pool := func(strategy string) *builders.Pool {
		return builders.MakePool("ns", "python").Replicas(1).Strategy(strategy)
	}
	recreate := pool("Recreate").Obj()
	keep := pool("OnReplenish").Obj()
	rolling := pool("OnReplenish").Annotation("freshbind.dev/rollout-strategy", "RollingUpdate")
	hash := revisionOf(t, v2)
	failed := builders.PoolFrom(rolling.Obj()).Annotation(settings.RolloutStateKey, "Failed").
		Annotation(settings.RolloutStatusKey, `{"updateRevision":"`+hash+`"}`).Obj()
	waits := func(pool, template *unstructured.Unstructured) *builders.Sandbox {
		return of(pool, template, "m").Ready(false)
	}
	odd := builders.TemplateFrom(v1).Image("sandbox:odd").Obj()
	claim := builders.MakeClaim("ns", "c").Obj()
	cases := map[string]struct {
		pool   *unstructured.Unstructured
		member *builders.Sandbox
		audit  bool
		// lost: the template is not there.
		lost bool
		want bool
		// found is the revision that the member is of.
		found string
	}{
		"recreate, stale":                {pool: recreate, member: waits(recreate, v1), want: true, found: revisionOf(t, v1)},
		"recreate, current":              {pool: recreate, member: waits(recreate, v2), found: hash},
		"recreate, audited":              {pool: recreate, member: waits(recreate, v1), audit: true},
		"recreate, without its template": {pool: recreate, member: waits(recreate, v1), lost: true},
		"recreate, paused": {
			pool: builders.PoolFrom(recreate).Annotation("freshbind.dev/paused", "true").Obj(), member: waits(recreate, v1), found: revisionOf(t, v1),
		},
		"recreate, restarted since": {
			pool:   builders.PoolFrom(recreate).Annotation("freshbind.dev/restarted-at", "2026-01-01T11:30:00Z").Obj(),
			member: waits(recreate, v2), want: true, found: hash,
		},
		"recreate, unknown": {pool: recreate, member: waits(recreate, odd), want: true, found: revisionOf(t, odd)},
		"recreate, unknown, as all that were born since": {
			pool: builders.PoolFrom(recreate).Annotation(settings.AttributionKey, hash).Annotation(settings.RolloutStatusKey,
				`{"updateRevision":"`+hash+`","startTime":"2026-01-01T10:00:00Z"}`).Obj(),
			member: waits(recreate, odd), found: revisionOf(t, odd),
		},
		"pool being deleted": {
			pool: builders.PoolFrom(recreate).Deleting(now).Set([]any{"x/y"}, "metadata", "finalizers").Obj(), member: waits(recreate, v1),
		},
		"rolling, stale":         {pool: rolling.Obj(), member: waits(recreate, v1), want: true, found: revisionOf(t, v1)},
		"rolling, failed":        {pool: failed, member: waits(recreate, v1), found: revisionOf(t, v1)},
		"on replenish, stale":    {pool: keep, member: waits(keep, v1), found: revisionOf(t, v1)},
		"on replenish, used":     {pool: keep, member: waits(keep, v2).Annotation(settings.BoundToKey, "uid"), want: true},
		"another pool's, by UID": {pool: builders.PoolFrom(recreate).UID("new").Obj(), member: waits(recreate, v1)},
		"a claim's":              {pool: recreate, member: builders.SandboxFrom(builders.Bound(waits(recreate, v1).Obj(), claim, v1).Obj())},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objs := []*unstructured.Unstructured{tc.pool, tc.member.Obj()}
			if !tc.lost {
				objs = append(objs, v2)
			}
			r := newHarness(t, history{v2, v1}, objs...)
			f := r.dispositions(!tc.audit)
			pod := builders.MakePod(tc.member.Obj()).Obj()
			for range 2 {
				got, err := f.Of(t.Context(), pod)
				if err != nil {
					t.Fatal(err)
				}
				if got.ToBeDeleted != tc.want || got.Found != tc.found {
					t.Errorf("goes: %v, found %q, want %v and %q", got.ToBeDeleted, got.Found, tc.want, tc.found)
				}
			}
		})
	}
}

func revisionOf(t *testing.T, template *unstructured.Unstructured) string {
	t.Helper()
	recorded, err := history{template}.Revisions(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	return recorded[0].Hash
}

// The filter and the controller that deletes agree on every member that waits for
// a node.
func TestDispositionsAgreesWithThePlan(t *testing.T) {
	for _, strategy := range []string{"Recreate", "RollingUpdate", "OnReplenish"} {
		for name, annotations := range map[string]map[string]string{
			"": {}, "paused": {"freshbind.dev/paused": "true"}, "restarted": {"freshbind.dev/restarted-at": "2026-01-01T11:30:00Z"},
		} {
			t.Run(strategy+" "+name, func(t *testing.T) {
				b := builders.MakePool("ns", "python").Replicas(4).Strategy("OnReplenish").Annotation("freshbind.dev/rollout-strategy", strategy)
				for key, value := range annotations {
					b.Annotation(key, value)
				}
				pool := b.Obj()
				objs := []*unstructured.Unstructured{pool, v2}
				var waiting []*unstructured.Unstructured
				for _, m := range []*builders.Sandbox{
					of(pool, v1, "stale"), of(pool, v2, "current"), of(pool, builders.TemplateFrom(v1).Image("odd").Obj(), "unknown"),
					of(pool, v2, "used").Annotation(settings.BoundToKey, "uid"),
				} {
					waiting = append(waiting, m.Ready(false).Obj())
				}
				r := newHarness(t, history{v2, v1}, append(objs, waiting...)...)
				f := r.dispositions(true)
				var goes []string
				for _, m := range waiting {
					p, err := f.Of(t.Context(), builders.MakePod(m).Obj())
					if err != nil {
						t.Fatal(err)
					}
					if p.ToBeDeleted {
						goes = append(goes, "delete "+m.GetName())
					}
				}
				writes, _ := r.step(pool)
				if diff := cmp.Diff(writes, goes, cmp.Transformer("deletes", deletesOnly)); diff != "" {
					t.Errorf("(-deleted,+refused):\n%s", diff)
				}
			})
		}
	}
}

func deletesOnly(writes []string) map[string]bool {
	out := map[string]bool{}
	for _, w := range writes {
		if len(w) > 7 && w[:7] == "delete " {
			out[w] = true
		}
	}
	return out
}

// Until the garbage collector comes, the Pod of a member that is gone is there.
func TestDispositionsOfMembersThatLeftTheirPool(t *testing.T) {
	pool := builders.MakePool("ns", "python").Strategy("OnReplenish").Obj()
	member := of(pool, v2, "m").Ready(false).Obj()
	pod := builders.MakePod(member).Obj()
	claim := builders.MakeClaim("ns", "c").Obj()
	bound := builders.Bound(member, claim, v2).UID(string(member.GetUID())).Obj()
	cases := map[string]struct {
		seen, audit bool
		now         *unstructured.Unstructured
		want        bool
	}{
		"deleted":                {seen: true, want: true},
		"deleted, audited":       {seen: true, audit: true},
		"never seen":             {},
		"a claim got it":         {seen: true, now: bound},
		"deleted and made again": {seen: true, now: builders.SandboxFrom(member).UID("new").Obj(), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objs := []*unstructured.Unstructured{pool, v2}
			if tc.now != nil {
				objs = append(objs, tc.now)
			}
			r := newHarness(t, history{v2}, objs...)
			f := r.dispositions(!tc.audit)
			// A claim's Sandbox has not the label that the members' cache selects by.
			if tc.now == bound {
				f.view = viewOf(newHarness(t, nil, pool, v2))
			}
			if tc.seen {
				f.remember(platform.NewReducer(agentsandbox.Objects{}).Member(member, nil), nil)
			}
			got, err := f.Of(t.Context(), pod)
			if err != nil {
				t.Fatal(err)
			}
			if got.ToBeDeleted != tc.want {
				t.Errorf("goes: %v, want %v", got.ToBeDeleted, tc.want)
			}
		})
	}
}

// A scheduler's watch of Pods can be ahead of ours of Sandboxes.
func TestDispositionsOfMembersThatNoCacheShows(t *testing.T) {
	pool := builders.MakePool("ns", "python").Strategy("Recreate").Obj()
	stale, current := of(pool, v1, "m").Ready(false).Obj(), of(pool, v2, "m").Ready(false).Obj()
	claims := builders.Bound(current, builders.MakeClaim("ns", "c").Obj(), v2).UID(string(current.GetUID())).Obj()
	is := freshness.PodDisposition{Pool: "python", PoolUID: string(pool.GetUID()), Expected: revisionOf(t, v2)}
	as := func(found string, goes bool) freshness.PodDisposition {
		out := is
		out.Found, out.ToBeDeleted = found, goes
		return out
	}
	cases := map[string]struct {
		stored *unstructured.Unstructured
		// shown: the cache has it after all; only are the namespaces to look at.
		shown, audit bool
		only         []string
		refuse       error
		want         freshness.PodDisposition
		reads        int
	}{
		"current":                  {stored: current, want: as(revisionOf(t, v2), false), reads: 1},
		"stale":                    {stored: stale, want: as(revisionOf(t, v1), true), reads: 1},
		"audited":                  {stored: stale, audit: true, reads: 1},
		"a claim's":                {stored: claims, reads: 1},
		"its pool's by name only":  {stored: builders.SandboxFrom(stale).Unset("metadata", "labels", agentsandbox.WarmPoolLabel).Obj(), reads: 1},
		"a claim's, as is shown":   {stored: claims, shown: true},
		"another one of its name":  {stored: builders.SandboxFrom(current).UID("new").Obj(), reads: 1},
		"gone":                     {reads: 1},
		"of a namespace in scope":  {stored: current, only: []string{"other", "ns"}, want: as(revisionOf(t, v2), false), reads: 1},
		"of a namespace out of it": {stored: current, only: []string{"other"}},
		"cannot be read":           {stored: current, refuse: context.DeadlineExceeded, reads: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objs := []*unstructured.Unstructured{pool, v2}
			shown := objs
			if tc.stored != nil {
				objs = append(objs, tc.stored)
			}
			if tc.shown {
				shown = objs
			}
			f := newHarness(t, history{v2, v1}, objs...).dispositions(!tc.audit)
			f.view = viewOf(newHarness(t, nil, shown...))
			f.view.only = tc.only
			reads, live := 0, f.live
			f.live = func(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
				reads++
				if end, ok := ctx.Deadline(); !ok || time.Until(end) > unseenWithin {
					t.Error("the scheduler waits without a bound")
				}
				if tc.refuse != nil {
					return nil, tc.refuse
				}
				return live(ctx, key)
			}
			got, err := f.Of(t.Context(), builders.MakePod(current).Obj())
			if !errors.Is(err, tc.refuse) {
				t.Fatalf("error %v, want %v", err, tc.refuse)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if reads != tc.reads {
				t.Errorf("%d live reads, want %d", reads, tc.reads)
			}
		})
	}
}

func TestDispositionsLooksNothingUpForOthersPods(t *testing.T) {
	f := newDispositions(&View{objects: agentsandbox.Objects{}}, Options{}, nil, nil)
	pod := builders.MakePod(of(builders.MakePool("ns", "python").Obj(), v2, "m").Obj())
	for name, owners := range map[string][]metav1.OwnerReference{
		"nobody's":        nil,
		"a replica set's": {{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "u", Controller: &[]bool{true}[0]}},
		// Nothing can be a pool's itself where no members are Pods.
		"a pool's":          {builders.ControllerRef(builders.MakePool("ns", "python").Obj())},
		"a foreign claim's": {{APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxClaim", Name: "c", UID: "u", Controller: &[]bool{true}[0]}},
	} {
		got, err := f.Of(t.Context(), pod.Owners(owners...).Obj())
		if err != nil || got != (freshness.PodDisposition{}) {
			t.Errorf("%s: %v, %v, want nothing", name, got, err)
		}
	}
}

func TestPoolsOfDispositions(t *testing.T) {
	pools := []*unstructured.Unstructured{builders.MakePool("ns", "a").Obj(), builders.MakePool("ns", "b").Obj(), builders.MakePool("other", "c").Obj()}
	got, err := newHarness(t, nil, pools...).dispositions(true).Pools(t.Context(), "ns")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pool := range got {
		names = append(names, pool.GetName())
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

// A verdict that depends on more than the objects holds for a moment only.
func TestDispositionsAreNotRememberedForLong(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).Strategy("Recreate").
		Annotation(settings.AttributionKey, revisionOf(t, v2)).Annotation(settings.RolloutStatusKey,
		`{"updateRevision":"`+revisionOf(t, v2)+`","startTime":"2026-01-01T10:00:00Z"}`).Obj()
	member := of(pool, v1, "m").Ready(false).Obj()
	r := newHarness(t, history{v2}, pool, v2, member)
	f := r.dispositions(true)
	goes := func() bool {
		p, err := f.Of(t.Context(), builders.MakePod(member).Obj())
		if err != nil {
			t.Fatal(err)
		}
		return p.ToBeDeleted
	}
	if goes() {
		t.Fatal("goes, although nobody knows what it is built from")
	}
	r.platform.(*inForce).History = history{v2, v1}
	r.clock.SetTime(now.Add(goodFor + time.Millisecond))
	if !goes() {
		t.Error("does not go, although its revision is recorded now and older")
	}
}
