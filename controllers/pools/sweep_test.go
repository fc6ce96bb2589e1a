package pools

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func nodeNamed(name string, evicting bool) *unstructured.Unstructured {
	n := object(nodeKind)
	n.SetName(name)
	if evicting {
		n.Object["spec"] = map[string]any{"taints": []any{map[string]any{"key": "going", "effect": "NoExecute"}}}
	}
	return n
}

// Members that are bare Pods are judged when the pool, its template or a node
// changes, not all the time.
func TestBarePodsAreSweptWhenSomethingChanged(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).APIVersion(builders.V1Alpha1).Obj()
	pod := func(owner *unstructured.Unstructured, name string) *unstructured.Unstructured {
		return builders.MakePod(of(pool, v1, name).Obj()).Owners(builders.ControllerRef(owner)).
			Label(agentsandbox.PodPoolLabel, agentsandbox.NameHash("python")).Obj()
	}
	r := newHarness(t, nil, v1, pod(pool, "a"), pod(builders.MakePool("ns", "python").UID("another").Obj(), "b"))
	r.pods = &Pods{hints: make(hints.Queue[Refusal], 10)}
	noted := func() []string {
		var out []string
		for len(r.pods.hints) > 0 {
			out = append(out, (<-r.pods.hints).Key.Name)
		}
		return out
	}
	nodes := func(nodes ...*unstructured.Unstructured) func() {
		return func() { r.view.cache = newHarness(t, nil, nodes...).client }
	}
	m := &poolRecord{template: templateVersion{generation: 1}}
	again := []string{"a"}
	for _, tc := range []struct {
		what   string
		change func()
		want   []string
	}{
		{"never swept", nodes(nodeNamed("n1", false), nodeNamed("n2", false)), again},
		{"nothing changed", func() {}, nil},
		{"template changed", func() { m.template.generation = 2 }, again},
		{"pool changed", func() { pool.SetGeneration(pool.GetGeneration() + 1) }, again},
		{"a node comes", nodes(nodeNamed("n1", false), nodeNamed("n2", false), nodeNamed("n3", false)), nil},
		{"a node evicts", nodes(nodeNamed("n1", true), nodeNamed("n2", false), nodeNamed("n3", false)), again},
		{"the node that evicts goes, and those that it let stay", nodes(nodeNamed("n2", false), nodeNamed("n3", false)), again},
		{"a node goes unannounced", nodes(nodeNamed("n2", false)), again},
		{"another comes for it", nodes(nodeNamed("n2", false), nodeNamed("n4", false)), nil},
		{"one comes and one goes", nodes(nodeNamed("n4", false), nodeNamed("n5", false)), again},
	} {
		tc.change()
		if err := r.sweep(t.Context(), m, &poolState{pool: pool}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, noted()); diff != "" {
			t.Errorf("%s: swept (-want,+got):\n%s", tc.what, diff)
		}
	}
}

// cachedPod is the Pod of a member on node-1, as the cache has it.
func cachedPod(t *testing.T, member *unstructured.Unstructured, tolerates bool) *unstructured.Unstructured {
	t.Helper()
	pod := builders.MakePod(member).Stored("node-1")
	if tolerates {
		pod.Set([]any{map[string]any{"key": "going", "operator": "Exists"}}, "spec", "tolerations")
	}
	trimmed, err := trimPod(pod.Obj())
	if err != nil {
		t.Fatal(err)
	}
	return trimmed.(*unstructured.Unstructured)
}

// Members on nodes that are about to go for their Pods are judged again; those
// whose Pods tolerate the taint of their nodes are left alone.
func TestMembersOnATaintedNode(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Obj()
	leaves, stays := of(pool, v1, "leaves").Obj(), of(pool, v1, "stays").Obj()
	r := newHarness(t, nil, pool, v1, leaves, stays, cachedPod(t, leaves, false), cachedPod(t, stays, true), nodeNamed("node-1", true))
	r.step(pool)
	if diff := cmp.Diff([]string{"leaves"}, r.noted()); diff != "" {
		t.Errorf("judged again (-want,+got):\n%s", diff)
	}
}

// The members of a zone that fails do not all go at once, and each goes once.
func TestMembersOnATaintedNodeGoAtThePace(t *testing.T) {
	pool := builders.MakePool("ns", "python").Template("python").Replicas(3).Strategy("Recreate").Obj()
	objs := []*unstructured.Unstructured{pool, v1, nodeNamed("node-1", true)}
	for i := range 3 {
		objs = append(objs, of(pool, v1, fmt.Sprint("m", i)).Obj())
	}
	r := newHarness(t, history{v1}, objs...)
	r.paced(50, 2)
	put, _ := storeOf(t, r)
	r.view.followNodes(r.view.members.(podNodes))
	for _, member := range objs[3:] {
		stored := object(poolKinds.Sandboxes)
		if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(member), stored); err != nil {
			t.Fatal(err)
		}
		put(stored, builders.MakePod(stored).Stored("node-1").Obj())
	}
	var noted []int
	for i := range 3 {
		r.clock.SetTime(now.Add(time.Duration(i) * time.Hour))
		if writes, _ := r.step(pool); deletesIn(writes) > 0 {
			t.Fatalf("the plan deletes %v", writes)
		}
		noted = append(noted, len(r.noted()))
	}
	if diff := cmp.Diff([]int{2, 1, 0}, noted); diff != "" {
		t.Errorf("members that are judged again, at each look (-want,+got):\n%s", diff)
	}
	if _, woken := r.later["python"]; !woken {
		t.Error("the pool is not woken when more may go")
	}
}

// A node begins to leave after its members were looked at, and nobody tries them.
func TestMembersOnANodeThatIsTaintedLater(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).Strategy("Recreate").Obj()
	member := of(pool, v1, "leaves").Obj()
	with := func(node *unstructured.Unstructured) *harness {
		return newHarness(t, nil, pool, v1, member, cachedPod(t, member, false), node)
	}
	r, tainted := with(nodeNamed("node-1", false)), nodeNamed("node-1", true)
	r.step(pool)
	if noted := r.noted(); len(noted) > 0 {
		t.Fatalf("judged again on a node that stays: %v", noted)
	}
	r.view.cache = with(tainted).client
	if keys := r.view.poolsOnNode(t.Context(), tainted); len(keys) != 1 {
		t.Fatalf("pools %v are looked at, want the one", keys)
	}
	r.step(pool)
	if diff := cmp.Diff([]string{"leaves"}, r.noted()); diff != "" {
		t.Errorf("judged again (-want,+got):\n%s", diff)
	}
}

// Which pools hear of a node: those with a member there, or all when their
// members are in no cache.
func TestPoolsOnANode(t *testing.T) {
	pool, other := builders.MakePool("ns", "python").Obj(), builders.MakePool("ns", "other").Obj()
	member := of(pool, v1, "a").Obj()
	alpha := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return builders.PoolFrom(u).APIVersion(builders.V1Alpha1).Obj()
	}
	there := []string{"ns/python"}
	cases := map[string]struct {
		bare      bool
		node      *unstructured.Unstructured
		tolerates bool
		want      []string
	}{
		"set aside, tolerated": {node: nodeNamed("node-1", true), tolerates: true},
		"stays":                {node: nodeNamed("node-1", false)},
		"stays, bare pods":     {bare: true, node: nodeNamed("node-1", false)},
		"leaving":              {node: nodeNamed("node-1", true), want: there},
		"leaving, bare pods":   {bare: true, node: nodeNamed("node-1", true), want: []string{"ns/other", "ns/python"}},
		"gone, unannounced":    {want: there},
		"gone, with bare pods": {bare: true, want: []string{"ns/other", "ns/python"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objs := []*unstructured.Unstructured{pool, other, v1, member, cachedPod(t, member, tc.tolerates)}
			if tc.bare {
				objs = []*unstructured.Unstructured{alpha(pool), alpha(other), v1}
			}
			if tc.node != nil {
				objs = append(objs, tc.node)
			}
			r := newHarness(t, nil, objs...)
			if tc.bare {
				r.view.kinds.Pools.Version = builders.V1Alpha1
			}
			var got []string
			for _, key := range r.view.poolsOnNode(t.Context(), nodeNamed("node-1", false)) {
				got = append(got, key.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// Bare Pods are in no cache: a pool of them says nothing of its rollout, rather
// than that none of its members is up to date.
func TestAPoolOfBarePodsHasNoOutcome(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(1).Strategy("Recreate").Obj()
	r := newHarness(t, nil, pool, v1)
	r.step(pool)
	if got := r.annotation(pool, settings.RolloutStateKey); got != "Progressing" {
		t.Fatalf("state %q before there is any member, want Progressing", got)
	}
	stored := object(poolKinds.Pools)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(pool), stored); err != nil {
		t.Fatal(err)
	}
	m := r.records[client.ObjectKeyFromObject(pool)]
	m.bare = true
	s := &poolState{pool: stored, template: v1}
	s.Now = now.Add(time.Hour)
	if _, err := r.publish(t.Context(), m, s, freshness.MakePlan(s.PoolState)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{settings.RolloutStateKey, settings.RolloutReasonKey, settings.RolloutStatusKey, settings.AdmitKey} {
		if got := r.annotation(pool, key); got != "" {
			t.Errorf("%s is %q, want none", key, got)
		}
	}
}
