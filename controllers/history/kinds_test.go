package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
)

var (
	setKind    = schema.GroupVersionKind{Group: kruise.Group, Version: "v1alpha1", Kind: "SandboxSet"}
	sharedKind = schema.GroupVersionKind{Group: kruise.Group, Version: "v1alpha1", Kind: "SandboxTemplate"}
)

// boxes is a SandboxSet, which is the template of its members unless it refers to another
// one; by annotation it says enforce.
func boxes(name, ref string, enforces bool) *unstructured.Unstructured {
	spec := map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
		"name": "main", "image": "box", "env": []any{map[string]any{"name": "TOKEN", "value": canary}},
	}}}}}
	if ref != "" {
		spec = map[string]any{"templateRef": map[string]any{"name": ref}}
	}
	set := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	set.SetGroupVersionKind(setKind)
	set.SetNamespace("ns")
	set.SetName(name)
	set.SetUID(types.UID("uid-" + name))
	set.SetResourceVersion("1")
	set.SetGeneration(1)
	if enforces {
		set.SetAnnotations(map[string]string{settings.EnforcementKey: "enforce"})
	}
	return set
}

// shared is a template that SandboxSets can refer to.
func shared(name string) *unstructured.Unstructured {
	template := boxes(name, "", false)
	template.SetGroupVersionKind(sharedKind)
	template.SetUID(types.UID("uid-of-template-" + name))
	return template
}

// madeBy is a template that something of the platform's own, or another one, controls.
func madeBy(kind schema.GroupVersionKind) *unstructured.Unstructured {
	template := shared("box")
	template.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "x", UID: "uid-x"}, kind)})
	return template
}

func newBoxRecorder(c client.Client, shares bool) *Recorder {
	r := newRecorder(c, limit)
	r.templates, r.renders = setKind, kruise.Objects{}
	r.values.pools, r.values.reads = setKind, kruise.Objects{}
	if shares {
		r.templates, r.sharedKind, r.values.sharedKind = sharedKind, sharedKind.Kind, sharedKind.Kind
	}
	return r
}

func newBoxClient(t *testing.T, objs ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schema.GroupVersionKind{setKind, sharedKind} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build()
}

// Templates of two kinds can have one name. What a pool says of its own counts for no
// other.
func TestValuesOfAPoolThatIsItsOwnTemplate(t *testing.T) {
	one := func(set *unstructured.Unstructured) []client.Object { return []client.Object{set} }
	cases := map[string]struct {
		cached, live []client.Object
		want         bool
	}{
		"it says nothing":                      {one(boxes("box", "", false)), one(boxes("box", "", false)), false},
		"it enforces":                          {one(boxes("box", "", true)), one(boxes("box", "", true)), true},
		"another enforces":                     {one(boxes("other", "", true)), one(boxes("other", "", true)), false},
		"one enforces with a namesake":         {one(boxes("other", "box", true)), one(boxes("other", "box", true)), false},
		"it enforced, and refers to one now":   {one(boxes("box", "", true)), one(boxes("box", "box", true)), false},
		"it refers to a namesake and enforces": {one(boxes("box", "box", true)), one(boxes("box", "box", true)), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newBoxClient(t)
			r := newBoxRecorder(c, false)
			r.values.enforced, r.values.cached, r.values.live = says(false), newBoxClient(t, tc.cached...), newBoxClient(t, tc.live...)
			see(t, r, boxes("box", "", false))
			if diff := cmp.Diff([]bool{tc.want}, haveValues(t, c)); diff != "" {
				t.Errorf("values are stored (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestValuesOfATemplateThatPoolsReferTo(t *testing.T) {
	for name, tc := range map[string]struct {
		pool *unstructured.Unstructured
		want bool
	}{
		"one refers to it and enforces": {boxes("other", "box", true), true},
		"one refers to it":              {boxes("other", "box", false), false},
		"one enforces with another":     {boxes("other", "another", true), false},
		"a namesake enforces":           {boxes("box", "", true), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newBoxClient(t, tc.pool)
			r := newBoxRecorder(c, true)
			r.values.enforced = says(false)
			see(t, r, shared("box"))
			if diff := cmp.Diff([]bool{tc.want}, haveValues(t, c)); diff != "" {
				t.Errorf("values are stored (-want,+got):\n%s", diff)
			}
		})
	}
}

// A pool and a template of the same name and content have each their own history.
func TestNamesakesHaveEachTheirHistory(t *testing.T) {
	c := newBoxClient(t)
	for _, shares := range []bool{false, true, false} {
		r, template := newBoxRecorder(c, shares), boxes("box", "", false)
		if shares {
			template = shared("box")
		}
		see(t, r, template)
	}
	got := map[types.UID]int{}
	for _, cr := range storedRevisions(t, c) {
		got[metav1.GetControllerOf(&cr).UID]++
	}
	if diff := cmp.Diff(map[types.UID]int{"uid-box": 1, "uid-of-template-box": 1}, got); diff != "" {
		t.Errorf("revisions of the set, and of the template (-want,+got):\n%s", diff)
	}
}

// What a pool says itself is no part of the templates that it can refer to.
func TestARevisionIsReadAsOneOfItsKind(t *testing.T) {
	c := newBoxClient(t)
	template := shared("box")
	template.Object["spec"].(map[string]any)["persistentContents"] = []any{"disk"}
	see(t, newBoxRecorder(c, true), template)
	list, err := NewReader(c, kruise.Objects{}).Revisions(t.Context(), template)
	if err != nil || len(list) != 1 {
		t.Fatalf("revisions %v, %v; want one", list, err)
	}
	rendered, err := kruise.Objects{}.Render(shared("box"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rendered.Hash(), list[0].Hash); diff != "" {
		t.Errorf("hash (-want,+got):\n%s", diff)
	}
}

// The platform makes templates itself, which it never edits: of each revision of a pool,
// and of each snapshot.
func TestWhatThePlatformMakesIsNotRecorded(t *testing.T) {
	namespace := func(labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: labels}}
	}
	for name, tc := range map[string]struct {
		template *unstructured.Unstructured
		want     int
	}{
		"of a pool's revision": {madeBy(setKind), 0},
		"of a snapshot":        {madeBy(setKind.GroupVersion().WithKind("Checkpoint")), 0},
		"of an application":    {madeBy(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "App"}), 1},
		"by hand":              {shared("box"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newBoxClient(t, tc.template)
			r, q := newBoxRecorder(c, true), newQueue(t)
			r.note(tc.template, q)
			noted := q.Len()
			namespaceEvents(c, sharedKind).Update(t.Context(), updated(namespace(nil), namespace(map[string]string{"a": "b"})), q)
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(tc.template)}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]int{tc.want, tc.want, tc.want}, []int{noted, q.Len(), len(storedRevisions(t, c))}); diff != "" {
				t.Errorf("noted, asked for, and recorded (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestPoolsAskForTemplatesOfTheirKind(t *testing.T) {
	for name, tc := range map[string]struct {
		old, obj *unstructured.Unstructured
		// own and shared are how many templates of each kind are asked for.
		own, shared int
	}{
		"it begins to enforce":                     {boxes("box", "", false), boxes("box", "", true), 1, 0},
		"it enforces":                              {boxes("box", "", true), boxes("box", "", true), 0, 0},
		"it refers to a namesake":                  {boxes("box", "", true), boxes("box", "box", true), 1, 1},
		"one with a namesake begins to enforce":    {boxes("other", "box", false), boxes("other", "box", true), 0, 1},
		"one that refers to a namesake does so no": {boxes("box", "box", true), boxes("box", "", true), 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := func(sharedKind string) int {
				q := newQueue(t)
				poolEvents(kruise.Objects{}, sharedKind).Update(t.Context(), event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.obj}, q)
				return q.Len()
			}
			if diff := cmp.Diff([]int{tc.own, tc.shared}, []int{asked(""), asked(sharedKind.Kind)}); diff != "" {
				t.Errorf("asked for, of each kind (-want,+got):\n%s", diff)
			}
		})
	}
}

// What is remembered of a template that is gone is not taken for the past of one of
// another kind.
func TestFormerLivesAreOfOneKind(t *testing.T) {
	c := newBoxClient(t)
	r := newBoxRecorder(c, false)
	box := boxes("box", "", false)
	see(t, r, box)
	reader := NewReader(c, kruise.Objects{})
	namesake := boxes("box", "", false)
	namesake.SetKind("SandboxTemplate")
	namesake.SetUID("uid-of-another")
	var got []int
	for _, template := range []*unstructured.Unstructured{box, namesake} {
		list, err := reader.Revisions(t.Context(), template)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, len(list))
	}
	if diff := cmp.Diff([]int{1, 0}, got); diff != "" {
		t.Errorf("revisions of the set, and of its namesake (-want,+got):\n%s", diff)
	}
}
