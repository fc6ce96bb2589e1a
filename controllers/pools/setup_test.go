package pools

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/test/builders"
)

// delays notes when pools are to be looked at.
type delays struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	of map[string][]time.Duration
}

func (d delays) AddAfter(req reconcile.Request, after time.Duration) {
	d.of[req.Name] = append(d.of[req.Name], after)
}

// twice lets two pass.
type twice struct {
	flowcontrol.PassiveRateLimiter
	n int
}

func (t *twice) TryAccept() bool {
	t.n++
	return t.n <= 2
}

// Claims come right after an edit of a template. What a status says, and what a tenant
// edits again and again, can wait a little.
func TestPoolsOfAnEditedTemplateAreLookedAtAtOnce(t *testing.T) {
	old := builders.MakeTemplate("ns", "python").Obj()
	edited := event.UpdateEvent{ObjectOld: old, ObjectNew: builders.TemplateFrom(old).Set(int64(2), "metadata", "generation").Obj()}
	labelled := event.UpdateEvent{ObjectOld: old, ObjectNew: builders.TemplateFrom(old).Label("team", "a").Obj()}
	always := flowcontrol.NewFakeAlwaysRateLimiter()
	at := func(after ...time.Duration) map[string][]time.Duration { return map[string][]time.Duration{"a": after} }
	for name, tc := range map[string]struct {
		urgent flowcontrol.PassiveRateLimiter
		events []any
		want   map[string][]time.Duration
	}{
		"edited":                 {always, []any{edited}, at(0)},
		"edited again and again": {&twice{}, []any{edited, edited, edited, edited}, at(0, 0, batchPeriod, batchPeriod)},
		"no template":            {nil, []any{edited}, at(batchPeriod)},
		"not its spec":           {always, []any{labelled}, at(batchPeriod)},
		"created":                {always, []any{event.CreateEvent{Object: old}}, at(batchPeriod)},
		"deleted":                {always, []any{event.DeleteEvent{Object: old}}, at(batchPeriod)},
	} {
		t.Run(name, func(t *testing.T) {
			h := enqueuePools(func(_ context.Context, obj client.Object) []types.NamespacedName {
				return []types.NamespacedName{{Namespace: obj.GetNamespace(), Name: "a"}}
			}, tc.urgent)
			q := delays{of: map[string][]time.Duration{}}
			for _, of := range tc.events {
				switch e := of.(type) {
				case event.CreateEvent:
					h.Create(t.Context(), e, q)
				case event.UpdateEvent:
					h.Update(t.Context(), e, q)
				case event.DeleteEvent:
					h.Delete(t.Context(), e, q)
				}
			}
			if diff := cmp.Diff(tc.want, q.of); diff != "" {
				t.Errorf("looked at after (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestEditsOfTemplatesAreUrgent(t *testing.T) {
	v := &View{kinds: poolKinds}
	v.kinds.SharedTemplates = poolKinds.Templates.GroupVersion().WithKind("Shared")
	// How many pools a second; 0 for none.
	got := map[string]float32{}
	for _, w := range v.watches() {
		got[w.kind.Kind] = 0
		if w.urgent != nil {
			got[w.kind.Kind] = w.urgent.QPS()
		}
	}
	want := map[string]float32{"SandboxWarmPool": 0, "SandboxTemplate": urgentRate, "Node": 0, "Shared": urgentRate}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("urgent (-want,+got):\n%s", diff)
	}
}
