package agentsandbox

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
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
	"github.com/freshbind/freshbind/internal/fair"
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
	// selected are the labels by which members are listed in full.
	selected []string
	// unlisted is the kind whose lists fail; "" for none.
	unlisted string
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
			kind := strings.TrimSuffix(list.GetObjectKind().GroupVersionKind().Kind, "List")
			if l.unlisted != "" && kind == l.unlisted {
				return errAway
			}
			if u, ok := list.(*unstructured.UnstructuredList); ok {
				l.full = append(l.full, u.GetKind())
				if kind == kindSandbox {
					l.selected = append(l.selected, (&client.ListOptions{}).ApplyOptions(opts).LabelSelector.String())
				}
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
	a.Platform.Turns = fair.NewTurns(1, 1)
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
		"they name no template":     {stored: all(one(python), idleMembers(python, adviseV1, "a", 2, func(b *builders.Sandbox) { b.Unset("metadata", "annotations", templateRefAnnotation) })), old: adviseV1, new: adviseV2, want: []counts{{"python", 2, 2, 0, 0, 0, advice.Deleted}}},
		"of another template":       {stored: all(one(python), idleMembers(python, builders.MakeTemplate("ns", "other").Obj(), "a", 2)), old: adviseV1, new: adviseV2, want: []counts{{"python", 2, 0, 0, 2, 0, advice.Deleted}}},
		"another pool's that nobody understands": {
			stored: all(one(python), idleMembers(python, adviseV1, "a", 2), idleMembers(builders.MakePool("ns", "other").Obj(), adviseV1, "b", 1, func(b *builders.Sandbox) { b.Set("x", "spec") })),
			old:    adviseV1, new: adviseV2, want: []counts{{"python", 2, 2, 0, 0, 0, advice.Deleted}},
		},
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
		Selected       []string
	}
	pools := kindPool + "List"
	other := builders.MakePool("ns", "other").Template("other").Obj()
	unstamped := []string{warmPoolLabel + ",!" + settings.StampKey}
	cases := map[string]struct {
		stored []*unstructured.Unstructured
		new    *unstructured.Unstructured
		want   want
	}{
		"nothing changes":       {all(one, idleMembers(python, adviseV1, "a", 2)), adviseV1, want{}},
		"all stamped":           {all(one, idleMembers(python, adviseV1, "a", 2, stamped(stampOf(t, adviseV1)))), adviseV2, want{[]string{pools}, 2, 0, nil}},
		"one is not":            {all(one, idleMembers(python, adviseV1, "a", 2, stamped(stampOf(t, adviseV1))), idleMembers(python, adviseV1, "b", 1)), adviseV2, want{[]string{pools, kindSandbox + "List"}, 3, 0, unstamped}},
		"another pool's is not": {all(one, idleMembers(python, adviseV1, "a", 2, stamped(stampOf(t, adviseV1))), idleMembers(other, adviseV1, "b", 1)), adviseV2, want{[]string{pools}, 2, 0, nil}},
		"many are not":          {all(one, idleMembers(python, adviseV2, "b", maxUnstamped+1)), adviseV2, want{[]string{pools}, maxUnstamped + 1, maxUnstamped + 1, nil}},
		"as many as are read":   {all(one, idleMembers(python, adviseV1, "b", maxUnstamped)), adviseV2, want{[]string{pools, kindSandbox + "List"}, maxUnstamped, 0, unstamped}},
		"no pool refers to it":  {idleMembers(python, adviseV1, "a", 1), adviseV2, want{[]string{pools}, 0, 0, nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, l := newAdviser(true, true, tc.stored...)
			change, err := a.TemplateChange(t.Context(), adviseV1, tc.new)
			if err != nil {
				t.Fatal(err)
			}
			got := want{Full: l.full, Stale: change.BecomeStale(), Selected: l.selected}
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
	member := idleMembers(python, adviseV1, "a", 1)[0]
	claim, anyPool := builders.MakeClaim("ns", "c1").Obj(), builders.MakeClaimV1Alpha1("ns", "c1", "python", "default").Obj()
	noPod := builders.TemplateFrom(adviseV1).Unset("spec", "podTemplate").Obj()
	type objs = []*unstructured.Unstructured
	usual := objs{python, adviseV1, member}
	cases := map[string]struct {
		stored objs
		// unread is what cannot be read, and unlisted what cannot be listed.
		unread, unlisted string
		// unknown: nobody knows in which version to list.
		unknown  bool
		old, obj *unstructured.Unstructured
		err      string
	}{
		"mode":                         {stored: usual, unread: "namespace/ns", old: adviseV1, obj: adviseV2},
		"mode, for claims":             {stored: usual, unread: "namespace/ns", obj: claim},
		"pool":                         {stored: usual, unread: "sandboxwarmpool/python", obj: claim},
		"template":                     {stored: usual, unread: "sandboxtemplate/python", obj: claim},
		"pools":                        {stored: usual, unlisted: kindPool, old: adviseV1, obj: adviseV2},
		"pools, for claims":            {stored: usual, unlisted: kindPool, obj: anyPool},
		"members":                      {stored: usual, unlisted: kindSandbox, old: adviseV1, obj: adviseV2},
		"members, for claims":          {stored: usual, unlisted: kindSandbox, obj: claim},
		"version":                      {stored: usual, unknown: true, old: adviseV1, obj: adviseV2},
		"version, for claims":          {stored: usual, unknown: true, obj: claim},
		"no pod template":              {stored: usual, old: adviseV1, obj: noPod, err: "spec.podTemplate"},
		"no pod template before":       {stored: usual, old: noPod, obj: adviseV1, err: "spec.podTemplate"},
		"no pod template, for claims":  {stored: objs{python, noPod, member}, obj: claim, err: "spec.podTemplate"},
		"no pod template, no pool":     {stored: objs{noPod}, obj: builders.MakeClaimV1Alpha1("ns", "c1", "python", "none").Obj(), err: "spec.podTemplate"},
		"what a member is":             {stored: objs{python, adviseV1, builders.SandboxFrom(member).Set("x", "spec").Obj()}, old: adviseV1, obj: adviseV2, err: "spec"},
		"what a member is, for claims": {stored: objs{python, adviseV1, builders.SandboxFrom(member).Set("x", "spec").Obj()}, obj: claim, err: "spec"},
	}
	for name, tc := range cases {
		failing := newLister(tc.stored...)
		failing.unlisted = tc.unlisted
		for cached, cache := range map[string]client.Reader{"no cache": nil, "a cache": newLister(tc.stored...), "a cache that fails": failing} {
			t.Run(name+", "+cached, func(t *testing.T) {
				s := newStore(tc.stored...)
				s.fail[tc.unread] = errAway
				a := &Adviser{Platform: newPlatform(s, nil), Lister: &Lister{Cache: cache, API: failing, Resolver: s}}
				if tc.unknown {
					a.Lister.Resolver = undiscovered{}
				}
				a.Platform.Defaults.Mode = settings.Enforce
				switch effect, err := a.Predict(t.Context(), tc.old, tc.obj); {
				case tc.err == "" && !errors.Is(err, errAway):
					t.Errorf("Predict() = %v, error %v, want one that wraps the read's", effect, err)
				case err == nil || !strings.Contains(err.Error(), tc.err):
					t.Errorf("Predict() = %v, error %v, want one that says %q", effect, err, tc.err)
				}
			})
		}
	}
}

// Something is said on templates, and on claims that are new.
func TestPredict(t *testing.T) {
	claim, pool := builders.MakeClaim("ns", "c1").Obj(), builders.MakePool("ns", "python").Obj()
	a, _ := newAdviser(true, true, pool, adviseV1)
	for name, tc := range map[string]struct {
		old, obj *unstructured.Unstructured
		want     advice.Effect
	}{
		"a template":             {adviseV1, adviseV2, advice.TemplateChange{}},
		"a new claim":            {nil, claim, advice.Claim{}},
		"a claim that was there": {claim, claim, nil},
		"a pool":                 {nil, pool, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := a.Predict(t.Context(), tc.old, tc.obj)
			if err != nil || reflect.TypeOf(got) != reflect.TypeOf(tc.want) {
				t.Errorf("Predict() = %T, error %v, want %T", got, err, tc.want)
			}
		})
	}
}
