package pools

import (
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/test/builders"
)

// BenchmarkEvent is what a change of one member costs in a pool of 10,000: from
// what a watch delivers up to a plan that calls for nothing.
func BenchmarkEvent(b *testing.B) {
	const member = "python-5000"
	pool := builders.MakePool("ns", "python").Replicas(10_000).Strategy("OnReplenish").Annotation("freshbind.dev/rollout-strategy", "Recreate").Obj()
	cases := map[string]struct {
		kind   string
		change func(u *unstructured.Unstructured, i int)
		looks  int
	}{
		"pod, heartbeat": {"Pod", func(u *unstructured.Unstructured, i int) {
			u.Object["status"] = map[string]any{"phase": "Running", "podIP": fmt.Sprintf("10.0.0.%d", i%250)}
		}, 0},
		"pod, node": {"Pod", func(u *unstructured.Unstructured, i int) {
			u.Object["spec"].(map[string]any)["nodeName"] = fmt.Sprintf("node-%d", i%100)
		}, 1},
		"sandbox, readiness": {"Sandbox", func(u *unstructured.Unstructured, i int) {
			ready := []string{"False", "True"}[i%2]
			u.Object["status"] = map[string]any{"conditions": []any{
				map[string]any{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T11:00:00Z"},
			}}
		}, 1},
	}
	for name, tc := range cases {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			w.edit(b, v1)
			w.edit(b, v2)
			w.addPool(b, pool, v2)
			w.calmDown(b)
			sandbox := w.objects[objectKey{"Sandbox", client.ObjectKey{Namespace: "ns", Name: member}}]
			u, feed := sandbox.DeepCopy(), w.sandboxes.Update
			if tc.kind == "Pod" {
				u, feed = builders.MakePod(sandbox).UID("pod-"+member).Label("freshbind.dev/template-spec-hash", w.recorded[0].Hash).Stored("node-1").Obj(), w.bodies.Update
			}
			// They are of no use any more, and the garbage collector would look at all of
			// them again and again, which is not what an event costs.
			w.forgetMembers()
			writes, before := w.versions, cpu(b)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				u.SetResourceVersion(strconv.Itoa(1_000_000 + i))
				tc.change(u, i)
				if err := feed(u); err != nil {
					b.Fatal(err)
				}
				if n := w.reconcile(b); n != tc.looks {
					b.Fatalf("%d pools were looked at, want %d", n, tc.looks)
				}
			}
			if tc.kind == "Pod" && w.versions != writes {
				b.Fatalf("%d writes though nothing was to be done", w.versions-writes)
			}
			b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N)/1e3, "ms-cpu/event")
		})
	}
}

// BenchmarkTemplateEdit is what the controller itself costs once a template with
// 1,000 pools of 50 members each was edited, until 1,000 of them are replaced: all
// pools want everything at once then, and most have to wait.
func BenchmarkTemplateEdit(b *testing.B) {
	const pools, each, enough = 1000, 50, 1000
	w := newWorld(b)
	template := v1
	w.edit(b, template)
	for i := range pools {
		name := fmt.Sprintf("p%d", i)
		pool := builders.MakePool("ns", name).UID("uid-of-"+name).Template("python").Replicas(each).Strategy("OnReplenish").
			Annotation("freshbind.dev/rollout-strategy", "Recreate").Obj()
		w.addPool(b, pool, template)
	}
	w.calmDown(b)
	looks, born, first, later := 0, 0, time.Duration(0), time.Duration(0)
	for i := 2; b.Loop(); i++ {
		template = builders.TemplateFrom(v1).Image(fmt.Sprintf("sandbox:v%d", i)).Generation(int64(i)).RV(int64(i)).Obj()
		w.edit(b, template)
		w.callAll()
		before := cpu(b)
		if n := w.reconcile(b); n != pools {
			b.Fatalf("%d pools were looked at, want %d", n, pools)
		}
		first += cpu(b) - before
		for deletes := 0; deletes < enough; {
			if w.due.Len() == 0 && len(w.gone) == 0 {
				b.Fatalf("nothing goes on after %d deletes", deletes)
			}
			gone := slices.Clone(w.gone)
			w.show(b)
			for _, m := range gone {
				pool := w.objects[objectKey{poolKinds.Pools.Kind, client.ObjectKey{Namespace: "ns", Name: m.GetOwnerReferences()[0].Name}}]
				deletes, born = deletes+1, born+1
				w.bear(b, pool, template, fmt.Sprintf("%s-b%d", pool.GetName(), born))
			}
			before := cpu(b)
			looks += w.reconcile(b)
			later += cpu(b) - before
		}
	}
	b.ReportMetric(float64(first.Microseconds())/float64(b.N)/1e3/pools, "ms-cpu/edit/pool")
	b.ReportMetric(float64(later.Microseconds())/float64(looks)/1e3, "ms-cpu/look")
	b.ReportMetric(float64(looks)/float64(born), "looks/member")
}

// cpu is what this process has used until now.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
