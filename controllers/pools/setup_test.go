package pools

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/test/builders"
)

// Claims come right after an edit of a template. What a status says, and what a tenant
// edits again and again, can wait a little.
func TestPoolsOfAnEditedTemplateAreLookedAtAtOnce(t *testing.T) {
	old := builders.MakeTemplate("ns", "python").Obj()
	edited := builders.TemplateFrom(old).Set(int64(2), "metadata", "generation").Obj()
	labelled := builders.TemplateFrom(old).Label("team", "a").Obj()
	for name, tc := range map[string]struct {
		urgent flowcontrol.PassiveRateLimiter
		event  any
		want   []string
	}{
		"edited":                  {flowcontrol.NewFakeAlwaysRateLimiter(), event.UpdateEvent{ObjectOld: old, ObjectNew: edited}, []string{"a", "b"}},
		"edited again and again":  {flowcontrol.NewFakeNeverRateLimiter(), event.UpdateEvent{ObjectOld: old, ObjectNew: edited}, nil},
		"no template":             {nil, event.UpdateEvent{ObjectOld: old, ObjectNew: edited}, nil},
		"not its spec":            {flowcontrol.NewFakeAlwaysRateLimiter(), event.UpdateEvent{ObjectOld: old, ObjectNew: labelled}, nil},
		"created":                 {flowcontrol.NewFakeAlwaysRateLimiter(), event.CreateEvent{Object: old}, nil},
		"deleted":                 {flowcontrol.NewFakeAlwaysRateLimiter(), event.DeleteEvent{Object: old}, nil},
		"some more than a second": {flowcontrol.NewTokenBucketPassiveRateLimiter(1, 1), event.UpdateEvent{ObjectOld: old, ObjectNew: edited}, []string{"one of both"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer q.ShutDown()
				pools := func(_ context.Context, obj client.Object) []types.NamespacedName {
					if obj.(*unstructured.Unstructured).GetName() != "python" {
						t.Errorf("asked for the pools of %s", obj.GetName())
					}
					return []types.NamespacedName{{Namespace: "ns", Name: "a"}, {Namespace: "ns", Name: "b"}}
				}
				h := enqueuePools(pools, tc.urgent)
				switch e := tc.event.(type) {
				case event.CreateEvent:
					h.Create(t.Context(), e, q)
				case event.UpdateEvent:
					h.Update(t.Context(), e, q)
				case event.DeleteEvent:
					h.Delete(t.Context(), e, q)
				}
				synctest.Wait()
				if got := taken(q); len(tc.want) == 1 {
					if len(got) != 1 {
						t.Errorf("%v are looked at at once, want %v", got, tc.want)
					}
				} else if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("looked at at once (-want,+got):\n%s", diff)
				}
				time.Sleep(batchPeriod)
				synctest.Wait()
				if all := 2 - len(tc.want); q.Len() != all {
					t.Errorf("%d are looked at later, want %d", q.Len(), all)
				}
			})
		})
	}
}

// taken are the pools that may be looked at now.
func taken(q workqueue.TypedRateLimitingInterface[reconcile.Request]) []string {
	var out []string
	for q.Len() > 0 {
		next, _ := q.Get()
		q.Done(next)
		out = append(out, next.Name)
	}
	slices.Sort(out)
	return out
}
