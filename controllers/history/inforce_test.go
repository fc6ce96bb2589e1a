package history

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
)

// again is the template with the same content after `kubectl replace --force`.
func again(image string, rv int64) *unstructured.Unstructured {
	return builders.TemplateFrom(version(image, rv)).UID("second").Obj()
}

func storedRevisions(t *testing.T, c client.Client) []appsv1.ControllerRevision {
	t.Helper()
	var list appsv1.ControllerRevisionList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func hashesOf(t *testing.T, c client.Client, template *unstructured.Unstructured) []string {
	t.Helper()
	list, err := NewReader(c, agentsandbox.Objects{}).Revisions(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range list {
		out = append(out, r.Hash)
	}
	return out
}

func newQueue(t *testing.T) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	return q
}

// The garbage collector visits the revisions of a template that was replaced
// some time after the next one has come.
func TestARevisionOfTheTemplateBeforeIsTaken(t *testing.T) {
	c := newClient(t)
	r := newRecorder(c, limit)
	see(t, r, version("a", 1))
	second := again("a", 2)
	see(t, r, second)
	if diff := cmp.Diff([]string{hashOf(t, second)}, hashesOf(t, c, second)); diff != "" {
		t.Errorf("recorded of the second (-want,+got):\n%s", diff)
	}
	for _, cr := range storedRevisions(t, c) {
		if owner := metav1.GetControllerOf(&cr); owner == nil || owner.UID != second.GetUID() {
			t.Errorf("revision %s goes with the template before: %v", cr.Name, owner)
		}
	}
	next := again("b", 3)
	see(t, r, next)
	if diff := cmp.Diff([]string{hashOf(t, next), hashOf(t, second)}, hashesOf(t, c, next)); diff != "" {
		t.Errorf("after an edit (-want,+got):\n%s", diff)
	}
}

func TestADeletedRevisionInForceIsRecordedAgain(t *testing.T) {
	a := version("a", 1)
	cases := map[string]struct {
		stored []client.Object
		want   []string
	}{
		"the template is there":        {[]client.Object{a}, []string{hashOf(t, a)}},
		"it is another one, the same":  {[]client.Object{again("a", 2)}, []string{hashOf(t, a)}},
		"it has another content":       {[]client.Object{version("b", 2)}, []string{hashOf(t, version("b", 2))}},
		"it is gone":                   {nil, nil},
		"it is being deleted, as well": {[]client.Object{builders.TemplateFrom(a).Set([]any{"x/y"}, "metadata", "finalizers").Deleting(metav1.Now().Time).Obj()}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, tc.stored...)
			r := newRecorder(c, limit)
			see(t, r, a)
			for _, cr := range storedRevisions(t, c) {
				if err := c.Delete(t.Context(), &cr); err != nil {
					t.Fatal(err)
				}
				q := newQueue(t)
				r.missed(&cr, q)
				if q.Len() != 1 {
					t.Fatalf("%d requests after the delete of a revision", q.Len())
				}
				req, _ := q.Get()
				if _, err := r.Reconcile(t.Context(), req); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, cr := range storedRevisions(t, c) {
				got = append(got, cr.Labels["freshbind.dev/template-spec-hash"])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("recorded (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestRevisionsOfOthersAskForNothing(t *testing.T) {
	r := newRecorder(newClient(t), limit)
	yes := true
	for name, owners := range map[string][]metav1.OwnerReference{
		"nobody's":        nil,
		"a StatefulSet's": {{Kind: "StatefulSet", Name: "python", Controller: &yes}},
	} {
		q := newQueue(t)
		r.missed(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", OwnerReferences: owners}}, q)
		if q.Len() > 0 {
			t.Errorf("the delete of %s revision asks for a template", name)
		}
	}
}

func TestNamesOfOthersAreLeftAlone(t *testing.T) {
	a := version("a", 1)
	taken := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: revisionName("python", "", hashOf(t, a))}}
	c := newClient(t, taken)
	r := newRecorder(c, limit)
	if err := r.record(t.Context(), a); err == nil || !strings.Contains(err.Error(), "something else has this name") {
		t.Errorf("error is %v", err)
	}
	if list := storedRevisions(t, c); len(list) != 1 || len(list[0].OwnerReferences) > 0 {
		t.Errorf("stored %v", list)
	}
}

// exhausted is a quota that lets no revision of these hashes in.
func exhausted(t *testing.T, of map[string]bool) client.Client {
	t.Helper()
	return interceptor.NewClient(newClient(t).(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if of[obj.GetLabels()["freshbind.dev/template-spec-hash"]] {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "controllerrevisions"}, obj.GetName(), nil)
			}
			return c.Create(ctx, obj, opts...)
		},
	})
}

func TestARevisionThatCannotBeRecordedBlocksNoOther(t *testing.T) {
	a, b, d := version("a", 1), version("b", 2), version("d", 3)
	refused := map[string]bool{hashOf(t, a): true}
	c := exhausted(t, refused)
	r := newRecorder(c, limit)
	q := newQueue(t)
	for _, v := range []*unstructured.Unstructured{a, b, d} {
		r.note(v, q)
	}
	req, _ := q.Get()
	if _, err := r.Reconcile(t.Context(), req); err == nil {
		t.Error("a revision that was not recorded is no error, so nobody tries again")
	}
	if diff := cmp.Diff([]string{hashOf(t, d), hashOf(t, b)}, recorded(t, c)); diff != "" {
		t.Errorf("recorded (-want,+got):\n%s", diff)
	}
	clear(refused)
	if _, err := r.Reconcile(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{hashOf(t, d), hashOf(t, a), hashOf(t, b)}, recorded(t, c)); diff != "" {
		t.Errorf("recorded in the end, the one in force first (-want,+got):\n%s", diff)
	}
	if left := r.pending.of(req.NamespacedName); len(left) > 0 || r.pending.bytes != 0 {
		t.Errorf("%d versions wait, %d bytes", len(left), r.pending.bytes)
	}
}

func TestWhatAWatchDeliversAsAVersion(t *testing.T) {
	a := version("a", 1)
	cases := map[string]struct {
		old, obj *unstructured.Unstructured
		want     int
	}{
		"an edit":             {a, version("b", 2), 1},
		"a label":             {a, builders.TemplateFrom(a).Label("x", "y").RV(2).Obj(), 0},
		"replaced in between": {a, builders.TemplateFrom(a).UID("second").RV(2).Obj(), 1},
		"restored and edited": {a, version("b", 1), 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(newClient(t), limit)
			q := newQueue(t)
			r.noteUpdate(updated(tc.old, tc.obj), q)
			if q.Len() != tc.want || len(r.pending.of(client.ObjectKeyFromObject(a))) != tc.want {
				t.Errorf("%d requests, want %d", q.Len(), tc.want)
			}
		})
	}
}
