package agentsandbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

var (
	adviseV1 = builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()
	adviseV2 = builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj()
	adviseV3 = builders.MakeTemplate("ns", "python").Image("sandbox:v3").Obj()
)

func stampOf(t *testing.T, template *unstructured.Unstructured) string {
	t.Helper()
	b, err := RenderMember(template)
	if err != nil {
		t.Fatal(err)
	}
	return b.Hash()
}

// lister is a client that has the objects, and notes which kinds it lists in
// full.
type lister struct {
	client.Client
	full []string
}

func newLister(objs ...*unstructured.Unstructured) *lister {
	scheme := runtime.NewScheme()
	for group, kinds := range map[string][]string{
		CoreGroup: {kindSandbox}, ExtensionsGroup: {kindPool, kindTemplate, kindClaim},
	} {
		for _, kind := range kinds {
			gv := schema.GroupVersion{Group: group, Version: "v1beta1"}
			scheme.AddKnownTypeWithName(gv.WithKind(kind), &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(gv.WithKind(kind+"List"), &unstructured.UnstructuredList{})
		}
	}
	l := &lister{}
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, o := range objs {
		b = b.WithObjects(o.DeepCopy())
	}
	l.Client = b.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if u, ok := list.(*unstructured.UnstructuredList); ok {
				l.full = append(l.full, u.GetKind())
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	return l
}

// newAdviser stores the objects; cached says that metadata comes from a cache.
func newAdviser(cached, enforced bool, objs ...*unstructured.Unstructured) (*Adviser, *lister) {
	l := newLister(objs...)
	s := newStore(objs...)
	a := &Adviser{Platform: newPlatform(s, nil), Lister: &Lister{API: l, Resolver: s}}
	if enforced {
		a.Platform.Defaults.Mode = settings.Enforce
	}
	if cached {
		a.Lister.Cache = l
	}
	return a, l
}

// idleMembers returns n members of the pool, named after it.
func idleMembers(pool, template *unstructured.Unstructured, prefix string, n int, change ...func(*builders.Sandbox)) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for i := range n {
		b := builders.MakeMember(pool, template).Name(fmt.Sprintf("%s-%s%d", pool.GetName(), prefix, i)).Ready(true)
		for _, c := range change {
			c(b)
		}
		out = append(out, b.Obj())
	}
	return out
}

func all(lists ...[]*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

func stamped(hash string) func(*builders.Sandbox) {
	return func(b *builders.Sandbox) { b.Label(settings.StampKey, hash) }
}

func TestTemplateChange(t *testing.T) {
	python := builders.MakePool("ns", "python").Replicas(4).Annotation(settings.StrategyKey, "Recreate").Obj()
	node := builders.MakePool("ns", "node").Replicas(2).Obj()
	one := func(o ...*unstructured.Unstructured) []*unstructured.Unstructured { return o }
	v1, v2, v3 := stampOf(t, adviseV1), stampOf(t, adviseV2), stampOf(t, adviseV3)
	metadataOnly := builders.TemplateFrom(adviseV1).Set(map[string]any{"a": "b"}, "spec", "podTemplate", "metadata", "labels").Obj()
	sidecar := func(b *builders.Sandbox) { b.PodSpec("x", "hostname") }

	type counts struct {
		Pool                              string
		Idle, Stale, Fresh, Stay, Guessed int
		Policy                            advice.StalePolicy
	}
	cases := map[string]struct {
		stored   []*unstructured.Unstructured
		old, new *unstructured.Unstructured
		audited  bool
		want     []counts
	}{
		"nobody refers to it":       {stored: one(builders.MakePool("ns", "other").Template("other").Obj()), old: adviseV1, new: adviseV2},
		"metadata alone":            {stored: all(one(python), idleMembers(python, adviseV1, "a", 4)), old: adviseV1, new: metadataOnly},
		"by content":                {stored: all(one(python), idleMembers(python, adviseV1, "a", 4)), old: adviseV1, new: adviseV2, want: []counts{{"python", 4, 4, 0, 0, 0, advice.Deleted}}},
		"by content, audited":       {stored: all(one(python), idleMembers(python, adviseV1, "a", 4)), old: adviseV1, new: adviseV2, audited: true, want: []counts{{"python", 4, 4, 0, 0, 0, advice.KeptInAudit}}},
		"two pools":                 {stored: all(one(python, node), idleMembers(python, adviseV1, "a", 4), idleMembers(node, adviseV1, "b", 2)), old: adviseV1, new: adviseV2, want: []counts{{"node", 2, 2, 0, 0, 0, advice.Kept}, {"python", 4, 4, 0, 0, 0, advice.Deleted}}},
		"a rollback":                {stored: all(one(node), idleMembers(node, adviseV1, "a", 3), idleMembers(node, adviseV2, "b", 1), idleMembers(node, adviseV3, "c", 2)), old: adviseV2, new: adviseV1, want: []counts{{"node", 6, 1, 3, 2, 0, advice.Kept}}},
		"a rollback, by stamps":     {stored: all(one(node), idleMembers(node, adviseV1, "a", 3, stamped(v1)), idleMembers(node, adviseV2, "b", 1, stamped(v2)), idleMembers(node, adviseV3, "c", 2, stamped(v3))), old: adviseV2, new: adviseV1, want: []counts{{"node", 6, 1, 3, 2, 0, advice.Kept}}},
		"stored for the first time": {stored: all(one(python), idleMembers(python, adviseV1, "a", 3), idleMembers(python, adviseV2, "b", 1)), new: adviseV2, want: []counts{{"python", 4, 3, 0, 0, 0, advice.Deleted}}},
		"of another template":       {stored: all(one(python), idleMembers(python, builders.MakeTemplate("ns", "other").Obj(), "a", 2)), old: adviseV1, new: adviseV2, want: []counts{{"python", 2, 0, 0, 2, 0, advice.Deleted}}},
		"no idle members": {
			stored: all(one(python), idleMembers(python, adviseV1, "gone", 1, func(b *builders.Sandbox) {
				b.Deleting(time.Unix(1, 0)).Set([]any{"example.com/f"}, "metadata", "finalizers")
			}), one(builders.Bound(idleMembers(python, adviseV1, "bound", 1)[0], builders.MakeClaim("ns", "c").Obj(), adviseV1).Obj())),
			old: adviseV1, new: adviseV2, want: []counts{{"python", 0, 0, 0, 0, 0, advice.Deleted}},
		},
		"pools that want none": {
			stored: all(one(builders.PoolFrom(python).Replicas(0).Obj()), idleMembers(python, adviseV1, "a", 2)),
			old:    adviseV1, new: adviseV2,
		},
		"replicas by default": {
			stored: all(one(builders.PoolFrom(python).Unset("spec", "replicas").Obj()), idleMembers(python, adviseV1, "a", 2)),
			old:    adviseV1, new: adviseV2, want: []counts{{"python", 2, 2, 0, 0, 0, advice.Deleted}},
		},
		"pools of another namespace": {
			stored: all(one(builders.MakePool("elsewhere", "python").Obj()), idleMembers(builders.MakePool("elsewhere", "python").Obj(), adviseV1, "a", 2)),
			old:    adviseV1, new: adviseV2,
		},
		"what others inject": {
			stored: all(one(builders.PoolFrom(python).Annotation(settings.InjectedPathsKey, "podTemplate.spec.hostname").Obj()), idleMembers(python, adviseV1, "a", 2, sidecar)),
			old:    adviseV1, new: adviseV2, want: []counts{{"python", 2, 2, 0, 0, 0, advice.Deleted}},
		},
		"what others inject, unlisted": {
			stored: all(one(python), idleMembers(python, adviseV1, "a", 2, sidecar)),
			old:    adviseV1, new: adviseV2, want: []counts{{"python", 2, 0, 0, 2, 0, advice.Deleted}},
		},
	}
	for name, tc := range cases {
		for _, cached := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, cached %t", name, cached), func(t *testing.T) {
				a, _ := newAdviser(cached, !tc.audited, tc.stored...)
				change, err := a.TemplateChange(t.Context(), tc.old, tc.new)
				if err != nil {
					t.Fatal(err)
				}
				var got []counts
				for _, p := range change.Pools {
					got = append(got, counts{p.Name, p.Idle, p.BecomeStale, p.BecomeFresh, p.StayStale, p.Guessed, p.StalePolicy()})
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("TemplateChange() (-want,+got):\n%s", diff)
				}
			})
		}
	}
}

// What is stamped costs no list of whole Sandboxes, and what is too much to read
// is guessed.
func TestTemplateChangeReads(t *testing.T) {
	python := builders.MakePool("ns", "python").Obj()
	one := []*unstructured.Unstructured{python}
	type want struct {
		Full           []string
		Stale, Guessed int
	}
	pools := kindPool + "List"
	cases := map[string]struct {
		stored []*unstructured.Unstructured
		new    *unstructured.Unstructured
		want   want
	}{
		"nothing changes":      {all(one, idleMembers(python, adviseV1, "a", 2)), adviseV1, want{}},
		"all stamped":          {all(one, idleMembers(python, adviseV1, "a", 2, stamped(stampOf(t, adviseV1)))), adviseV2, want{[]string{pools}, 2, 0}},
		"one is not":           {all(one, idleMembers(python, adviseV1, "a", 2, stamped(stampOf(t, adviseV1))), idleMembers(python, adviseV1, "b", 1)), adviseV2, want{[]string{pools, kindSandbox + "List"}, 3, 0}},
		"many are not":         {all(one, idleMembers(python, adviseV2, "b", maxUnstamped+1)), adviseV2, want{[]string{pools}, maxUnstamped + 1, maxUnstamped + 1}},
		"no pool refers to it": {idleMembers(python, adviseV1, "a", 1), adviseV2, want{[]string{pools}, 0, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, l := newAdviser(true, true, tc.stored...)
			change, err := a.TemplateChange(t.Context(), adviseV1, tc.new)
			if err != nil {
				t.Fatal(err)
			}
			got := want{Full: l.full, Stale: change.BecomeStale()}
			for _, p := range change.Pools {
				got.Guessed += p.Guessed
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reads (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestPredictCannotTell(t *testing.T) {
	python := builders.MakePool("ns", "python").Strategy("Recreate").Set(1, "status", "readyReplicas").Obj()
	stored := all([]*unstructured.Unstructured{python, adviseV1}, idleMembers(python, adviseV1, "a", 1))
	claim := builders.MakeClaim("ns", "c1").Obj()
	away := errors.New("etcd is away")
	cases := map[string]struct {
		mode, pool error
		old, obj   *unstructured.Unstructured
	}{
		"mode":             {mode: away, old: adviseV1, obj: adviseV2},
		"mode, for claims": {mode: away, obj: claim},
		"pool":             {pool: away, obj: claim},
		"no pod template":  {old: adviseV1, obj: builders.TemplateFrom(adviseV1).Unset("spec", "podTemplate").Obj()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, _ := newAdviser(true, true, stored...)
			s := newStore(stored...)
			s.fail["sandboxwarmpool/python"], s.fail["namespace/ns"] = tc.pool, tc.mode
			a.Platform = newPlatform(s, nil)
			if effect, err := a.Predict(t.Context(), tc.old, tc.obj); err == nil {
				t.Errorf("Predict() = %v, want an error", effect)
			}
		})
	}
}
