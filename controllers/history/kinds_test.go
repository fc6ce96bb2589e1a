package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
)

var setKind = schema.GroupVersionKind{Group: kruise.Group, Version: "v1alpha1", Kind: "SandboxSet"}

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

func newBoxClient(t *testing.T, objs ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(setKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(setKind.GroupVersion().WithKind(setKind.Kind+"List"), &unstructured.UnstructuredList{})
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
			r := newRecorder(c, limit)
			r.templates, r.renders = setKind, kruise.Objects{}
			r.values = &values{enforced: says(false), cached: newBoxClient(t, tc.cached...), live: newBoxClient(t, tc.live...), pools: setKind, reads: kruise.Objects{}}
			see(t, r, boxes("box", "", false))
			if diff := cmp.Diff([]bool{tc.want}, told(t, c)); diff != "" {
				t.Errorf("values are stored (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestPoolsAskForTemplatesOfTheirKind(t *testing.T) {
	for name, tc := range map[string]struct {
		old, obj *unstructured.Unstructured
		want     int
	}{
		"it begins to enforce":                     {boxes("box", "", false), boxes("box", "", true), 1},
		"it enforces":                              {boxes("box", "", true), boxes("box", "", true), 0},
		"it refers to a namesake":                  {boxes("box", "", true), boxes("box", "box", true), 1},
		"one with a namesake begins to enforce":    {boxes("other", "box", false), boxes("other", "box", true), 0},
		"one that refers to a namesake does so no": {boxes("box", "box", true), boxes("box", "", true), 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t)
			poolEvents(kruise.Objects{}).Update(t.Context(), event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.obj}, q)
			if q.Len() != tc.want {
				t.Errorf("%d templates are asked for, want %d", q.Len(), tc.want)
			}
		})
	}
}

// What is remembered of a template that is gone is not taken for the past of one of
// another kind.
func TestFormerLivesAreOfOneKind(t *testing.T) {
	c := newBoxClient(t)
	r := newRecorder(c, limit)
	r.templates, r.renders = setKind, kruise.Objects{}
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
