package kruise

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// listing answers lists of Sandboxes with one a page.
type listing struct {
	client.Reader
	boxes []*unstructured.Unstructured
	fails bool
}

func (l listing) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if l.fails {
		return errors.New("the test lets nobody list")
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	list := into.(*unstructured.UnstructuredList)
	rest := l.boxes
	for len(rest) > 0 && rest[0].GetName() != o.Continue && o.Continue != "" {
		rest = rest[1:]
	}
	for i, box := range rest {
		if o.Namespace != box.GetNamespace() || !o.LabelSelector.Matches(labels.Set(box.GetLabels())) {
			continue
		}
		if len(list.Items) == 1 {
			list.SetContinue(rest[i].GetName())
			return nil
		}
		list.Items = append(list.Items, *box)
	}
	return nil
}

func TestAdviceOnSandboxSets(t *testing.T) {
	edit := func(s *unstructured.Unstructured) { set(s, podTemplate(newer), "spec", "template") }
	says := func(strategy freshness.Strategy) func(*unstructured.Unstructured) {
		return func(s *unstructured.Unstructured) {
			edit(s)
			s.SetAnnotations(map[string]string{settings.StrategyKey: string(strategy)})
		}
	}
	enforced := map[string]string{settings.EnforcementKey: string(settings.Enforce)}
	for name, tc := range map[string]struct {
		labels map[string]string
		floor  freshness.Strategy
		next   func(set *unstructured.Unstructured)
		// more are members beside two of the revision in force.
		more func(set *unstructured.Unstructured) []*unstructured.Unstructured
		want *advice.PoolChange
		line string
	}{
		"no content": {next: func(s *unstructured.Unstructured) { set(s, int64(7), "spec", "replicas") }},
		"another image, left to itself": {labels: enforced, next: edit,
			want: &advice.PoolChange{Idle: 2, BecomeStale: 2},
			line: "2 idle members become stale (pool 2: they are left to the platform)"},
		"a floor rolls nothing that nobody asked for": {labels: enforced, next: edit, floor: freshness.Recreate,
			want: &advice.PoolChange{Idle: 2, BecomeStale: 2},
			line: "2 idle members become stale (pool 2: they are left to the platform)"},
		"Recreate": {labels: enforced, next: says(freshness.Recreate),
			want: &advice.PoolChange{Idle: 2, BecomeStale: 2}, line: "2 idle members become stale (pool 2: Recreate deletes them)"},
		"Recreate, in mode audit": {next: says(freshness.Recreate),
			want: &advice.PoolChange{Idle: 2, BecomeStale: 2}, line: "2 idle members become stale (pool 2: mode audit keeps serving them)"},
		"OnReplenish": {labels: enforced, next: says(freshness.OnReplenish),
			want: &advice.PoolChange{Idle: 2, BecomeStale: 2}, line: "2 idle members become stale (pool 2: OnReplenish keeps serving them)"},
		"OnReplenish, below a floor": {labels: enforced, next: says(freshness.OnReplenish), floor: freshness.RollingUpdate,
			want: &advice.PoolChange{Idle: 2, BecomeStale: 2}, line: "2 idle members become stale (pool 2: RollingUpdate replaces them step by step)"},
		"enforced by the SandboxSet": {want: &advice.PoolChange{Idle: 2, BecomeStale: 2}, line: "2 idle members become stale (pool 2: Recreate deletes them)",
			next: func(s *unstructured.Unstructured) {
				edit(s)
				s.SetAnnotations(map[string]string{settings.StrategyKey: string(freshness.Recreate), settings.EnforcementKey: string(settings.Enforce)})
			}},
		"persistentContents": {next: func(s *unstructured.Unstructured) { set(s, []any{"disk"}, "spec", "persistentContents") },
			want: &advice.PoolChange{Idle: 2, BecomeStale: 2}, line: "2 idle members become stale (pool 2: they are left to the platform)"},
		"another template": {next: func(s *unstructured.Unstructured) {
			delete(s.Object["spec"].(map[string]any), "template")
			set(s, "other", "spec", "templateRef", "name")
		}, want: &advice.PoolChange{Idle: 2, BecomeStale: 2}, line: "2 idle members become stale (pool 2: they are left to the platform)"},
		"some are of the next one already": {next: edit, want: &advice.PoolChange{Idle: 4, BecomeStale: 2, BecomeFresh: 1, StayStale: 1},
			line: "2 idle members become stale (pool 2: they are left to the platform)",
			more: func(s *unstructured.Unstructured) []*unstructured.Unstructured {
				next, other := memberOf(s, "next"), memberOf(s, "other")
				container(next)["image"], container(other)["image"] = newer, "another"
				return []*unstructured.Unstructured{next, other}
			}},
		"what was injected is no difference": {next: func(s *unstructured.Unstructured) {
			edit(s)
			s.SetAnnotations(map[string]string{settings.InjectedPathsKey: "podTemplate.spec.runtimeClassName"})
		}, want: &advice.PoolChange{Idle: 3, BecomeStale: 3}, line: "3 idle members become stale (pool 3: they are left to the platform)",
			more: func(s *unstructured.Unstructured) []*unstructured.Unstructured {
				injected := memberOf(s, "injected")
				set(injected, "gvisor", "spec", "template", "spec", "runtimeClassName")
				return []*unstructured.Unstructured{injected}
			}},
		"whoever is no idle member": {next: edit, want: &advice.PoolChange{Idle: 2, BecomeStale: 2},
			line: "2 idle members become stale (pool 2: they are left to the platform)",
			more: func(s *unstructured.Unstructured) []*unstructured.Unstructured {
				going, locked, another, elsewhere := memberOf(s, "going"), memberOf(s, "locked"), memberOf(s, "another"), memberOf(s, "elsewhere")
				going.SetDeletionTimestamp(ptr.To(metav1.Now()))
				locked.SetAnnotations(map[string]string{ownerAnnotation: scaleDown})
				refs := another.GetOwnerReferences()
				refs[0].UID = "uid-of-another"
				another.SetOwnerReferences(refs)
				elsewhere.SetNamespace("elsewhere")
				held := memberOf(s, "held")
				held.SetAnnotations(map[string]string{ownerAnnotation: "somebody"})
				return []*unstructured.Unstructured{going, locked, another, elsewhere, held, takenFor(memberOf(s, "taken"), "uid-c", "c")}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			old := c.set()
			c.objs["namespaces/ns"].SetLabels(tc.labels)
			list := listing{boxes: []*unstructured.Unstructured{c.member, memberOf(old, "m2")}}
			if tc.more != nil {
				list.boxes = append(list.boxes, tc.more(old)...)
			}
			next := old.DeepCopy()
			tc.next(next)
			p := c.platform()
			if tc.floor != "" {
				floor, err := settings.NewFloor(&metav1.LabelSelector{}, false, tc.floor)
				if err != nil {
					t.Fatal(err)
				}
				p.Defaults.Floors = settings.Floors{floor}
			}
			got, err := (&Adviser{Platform: p, API: list}).TemplateChange(t.Context(), old, next)
			if err != nil {
				t.Fatal(err)
			}
			if (got.Before == got.After) != (tc.want == nil) {
				t.Errorf("from %s to %s, want a change: %t", got.Before, got.After, tc.want != nil)
			}
			if tc.want == nil && len(got.Pools) == 0 {
				return
			}
			pool := got.Pools[0]
			pool.Rollout = advice.Rollout{}
			if tc.want.Name = "pool"; !cmp.Equal(pool, *tc.want) {
				t.Errorf("pool (-want,+got):\n%s", cmp.Diff(*tc.want, pool))
			}
			if line := strings.Join(got.Lines(), "\n"); line != tc.line {
				t.Errorf("it says %q, want %q", line, tc.line)
			}
		})
	}
}

// One that is not stored has no members, whoever has its name.
func TestAdviceOnANewSandboxSet(t *testing.T) {
	c := newCluster()
	a := &Adviser{Platform: c.platform(), API: listing{fails: true}}
	got, err := a.TemplateChange(t.Context(), nil, c.set())
	if err != nil || got.Before != "" || got.After == "" || len(got.Pools) > 0 {
		t.Errorf("it is %+v and %v, want a hash and no pool", got, err)
	}
}

func TestAdviceOnSandboxSetsFails(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(c *cluster, list *listing, old, next *unstructured.Unstructured)
		want  string
	}{
		"an edit that cannot be read":     {func(_ *cluster, _ *listing, _, next *unstructured.Unstructured) { set(next, "x", "spec", "template") }, "spec.template: must be an object"},
		"what is stored cannot be read":   {func(_ *cluster, _ *listing, old, _ *unstructured.Unstructured) { set(old, "x", "spec", "template") }, "as it is stored: "},
		"a member that cannot be read":    {func(c *cluster, _ *listing, _, _ *unstructured.Unstructured) { set(c.member, "x", "spec", "template") }, "reading sandbox m: "},
		"members that cannot be listed":   {func(_ *cluster, list *listing, _, _ *unstructured.Unstructured) { list.fails = true }, "listing members of sandboxset pool: "},
		"a namespace that cannot be read": {func(c *cluster, _ *listing, _, _ *unstructured.Unstructured) { c.fail["namespaces/ns"] = true }, "reading namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			list := &listing{boxes: []*unstructured.Unstructured{c.member}}
			next := c.set().DeepCopy()
			set(next, podTemplate(newer), "spec", "template")
			tc.spoil(c, list, c.set(), next)
			_, err := (&Adviser{Platform: c.platform(), API: list}).TemplateChange(t.Context(), c.set(), next)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// unserved serves everything but Sandboxes.
type unserved struct{ resolver }

func (u unserved) Resource(ctx context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	if gr == Sandboxes {
		return schema.GroupVersionResource{}, errors.New("the test serves none")
	}
	return u.resolver.Resource(ctx, gr)
}

func TestAdviceNeedsSandboxes(t *testing.T) {
	c := newCluster()
	p := c.platform()
	p.Resolver = unserved{}
	next := c.set().DeepCopy()
	set(next, podTemplate(newer), "spec", "template")
	_, err := (&Adviser{Platform: p, API: listing{}}).TemplateChange(t.Context(), c.set(), next)
	if err == nil || !strings.Contains(err.Error(), "finding the served version of sandboxes.agents.kruise.io") {
		t.Errorf("error %v", err)
	}
}

func TestAdviceReadsAnnotationsOfSandboxSets(t *testing.T) {
	c := newCluster()
	c.set().SetAnnotations(map[string]string{"a": "b"})
	a := &Adviser{}
	if diff := cmp.Diff(advice.Inputs{Annotations: map[string]string{"a": "b"}}, a.Inputs(c.set())); diff != "" {
		t.Errorf("Inputs() (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff(advice.Inputs{}, a.Inputs(nil)); diff != "" {
		t.Errorf("Inputs() of nothing (-want,+got):\n%s", diff)
	}
}
