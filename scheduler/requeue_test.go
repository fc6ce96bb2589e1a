package scheduler

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// waiting is a pod of which the scheduler says so.
func waiting(name, message string) *unstructured.Unstructured {
	u := object(podKind)
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetUID("uid")
	u.Object["spec"] = map[string]any{}
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
	}}}
	return u
}

func on(node string, pod *unstructured.Unstructured) *unstructured.Unstructured {
	pod.Object["spec"] = map[string]any{"nodeName": node}
	return pod
}

func fakeClient(objs ...client.Object) client.WithWatch {
	scheme := runtime.NewScheme()
	for _, kind := range []string{"Pod", "PodList"} {
		if gvk := podKind.GroupVersion().WithKind(kind); kind == "Pod" {
			scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		} else {
			scheme.AddKnownTypeWithName(gvk, &unstructured.UnstructuredList{})
		}
	}
	box := builders.MakeMember(builders.MakePool("ns", "p").Obj(), builders.MakeTemplate("ns", "t").Obj()).Obj().GroupVersionKind()
	scheme.AddKnownTypeWithName(box, &unstructured.Unstructured{})
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).WithIndex(object(podKind), byRefusal, refusals).Build()
}

func TestRequeue(t *testing.T) {
	stale := "0/2 nodes are available: 2 " + StaleMember + " (is v1-a, in force is v1-b)."
	leaving := "0/2 nodes are available: 1 " + NodeLeaving + ", 1 Insufficient cpu."
	cases := map[string]struct {
		pod      *unstructured.Unstructured
		err      error
		node     bool
		requeued bool
		again    bool
	}{
		"fresh now":             {pod: waiting("fresh", stale), requeued: true, again: true},
		"a claim's now":         {pod: waiting("other", stale), requeued: true, again: true},
		"stale still":           {pod: waiting("stale", stale)},
		"waits for another":     {pod: waiting("fresh", "0/2 nodes are available: 2 Insufficient cpu.")},
		"has a node":            {pod: on("a1", waiting("fresh", stale))},
		"nodes leave":           {pod: waiting("fresh", leaving)},
		"a node stays":          {pod: waiting("fresh", leaving), node: true, requeued: true},
		"stale, and a node too": {pod: waiting("stale", stale), node: true},
		"nobody can tell":       {pod: waiting("fresh", stale), err: errors.New("the cache is empty")},
		"gone":                  {pod: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objs []client.Object
			key := client.ObjectKey{Namespace: "ns", Name: "fresh"}
			if tc.pod != nil {
				objs, key = append(objs, tc.pod), client.ObjectKeyFromObject(tc.pod)
			}
			c := fakeClient(objs...)
			n := &Requeuer{
				cache: c, client: c, members: members{dispositions: known, err: tc.err},
				metrics: NewMetrics(prometheus.NewRegistry()), clock: clocktesting.NewFakePassiveClock(start),
			}
			result, err := n.Reconcile(t.Context(), RefusedPod{NamespacedName: key, Node: tc.node})
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if again := result.RequeueAfter > 0; again != tc.again {
				t.Errorf("comes again: %v, want %v", again, tc.again)
			}
			if tc.pod == nil {
				return
			}
			stored := object(podKind)
			if err := c.Get(t.Context(), key, stored); err != nil {
				t.Fatal(err)
			}
			if _, requeued := stored.GetAnnotations()[settings.RequeuedAtKey]; requeued != tc.requeued {
				t.Errorf("requeued: %v, want %v", requeued, tc.requeued)
			}
		})
	}
}

// A requeue is about that very pod: a new one of its name was never refused.
func TestRequeuesNameThePod(t *testing.T) {
	var patch []byte
	c := recordPatches(fakeClient(waiting("fresh", StaleMember)), &patch)
	n := &Requeuer{
		cache: c, client: c, members: members{dispositions: known},
		metrics: NewMetrics(prometheus.NewRegistry()), clock: clocktesting.NewFakePassiveClock(start),
	}
	if _, err := n.Reconcile(t.Context(), RefusedPod{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "fresh"}}); err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"annotations":{"freshbind.dev/requeued-at":"2026-01-01T12:00:00Z"},"uid":"uid"}}`
	if diff := cmp.Diff(want, string(patch)); diff != "" {
		t.Errorf("patch (-want,+got):\n%s", diff)
	}
}

type patchRecorder struct {
	client.WithWatch
	into *[]byte
}

func recordPatches(c client.WithWatch, into *[]byte) client.WithWatch { return patchRecorder{c, into} }

func (r patchRecorder) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	*r.into = data
	return r.WithWatch.Patch(ctx, obj, patch, opts...)
}

func TestPodsOfAFormerScheduler(t *testing.T) {
	pool, template := builders.MakePool("ns", "python").Obj(), builders.MakeTemplate("ns", "python").Obj()
	member := builders.MakeMember(pool, template).Obj()
	named := builders.SandboxFrom(member).PodSpec("second", "schedulerName").Obj()
	pod := func(scheduler string) *builders.Pod {
		return builders.MakePod(member).Set(scheduler, "spec", "schedulerName")
	}
	cases := map[string]struct {
		pod     *builders.Pod
		sandbox *unstructured.Unstructured
		follows bool
		err     error
		gone    bool
	}{
		"waits for the second scheduler": {pod: pod("second"), sandbox: member, gone: true},
		"is on a node":                   {pod: pod("second").Set("node-1", "spec", "nodeName"), sandbox: member},
		"another scheduler's":            {pod: pod("default-scheduler"), sandbox: member},
		"its template wants that one":    {pod: pod("second"), sandbox: named},
		"its sandbox is gone":            {pod: pod("second")},
		"nobody's":                       {pod: pod("second").Owners(), sandbox: member},
		// Another leader may be at work already. The error brings the pod back.
		"another may lead": {pod: pod("second"), sandbox: member, follows: true, err: errNotLeading},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stored := tc.pod.Obj()
			objs := []client.Object{stored}
			if tc.sandbox != nil {
				objs = append(objs, tc.sandbox.DeepCopy())
			}
			c := fakeClient(objs...)
			s := &FormerScheduler{cache: c, client: c, live: c, sandboxes: member.GroupVersionKind(), scheduler: "second", platform: agentsandbox.Objects{}, leads: func() bool { return !tc.follows }}
			key := client.ObjectKeyFromObject(stored)
			if _, err := s.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			err := c.Get(t.Context(), key, object(podKind))
			if gone := err != nil; gone != tc.gone {
				t.Errorf("gone: %v (%v), want %v", gone, err, tc.gone)
			}
		})
	}
}
