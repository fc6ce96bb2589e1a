package scheduler

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/freshness"
)

// members says of each pod, by its name, what becomes of it.
type members struct {
	dispositions map[string]freshness.PodDisposition
	// placed are the nodes that members of the pool p are on, by the UIDs of their
	// pods.
	placed map[types.UID]string
	err    error
}

func (m members) Of(_ context.Context, pod metav1.Object) (freshness.PodDisposition, error) {
	return m.dispositions[pod.GetName()], m.err
}

// known are the dispositions of the pods that tests ask about.
var known = map[string]freshness.PodDisposition{
	"stale":   {Pool: "python", PoolUID: "p", ToBeDeleted: true, Found: "v1-a", Expected: "v1-b"},
	"unknown": {Pool: "python", PoolUID: "p", ToBeDeleted: true, Expected: "v1-b"},
	"gone":    {Pool: "python", PoolUID: "p", ToBeDeleted: true},
	"fresh":   {Pool: "python", PoolUID: "p", Found: "v1-b", Expected: "v1-b"},
}

func newExtender(m members) *Extender {
	nodes := NewNodes()
	nodes.OnAdd(makeNode("a1", "a"), true)
	nodes.OnAdd(makeNode("b1", "b"), true)
	nodes.OnAdd(tainted(makeNode("leaving", "b")), true)
	placed := NewPlaced(nodes)
	for uid, node := range m.placed {
		name := strings.TrimPrefix(string(uid), "uid-")
		placed.Members().OnAdd(makeMember("p", name, ""), true)
		placed.Pods().OnAdd(makePlaced(name, uid, node), true)
	}
	return &Extender{
		Members: m, Nodes: nodes, Placed: placed, Assumed: NewAssumeCache(clocktesting.NewFakePassiveClock(start)),
		Weights: Weights{Zone: 2, Node: 2, Image: 1}, Metrics: NewMetrics(prometheus.NewRegistry()),
	}
}

func makeNode(name, zone string, images ...string) *unstructured.Unstructured {
	u := object(nodeKind)
	u.SetName(name)
	u.SetLabels(map[string]string{corev1.LabelTopologyZone: zone})
	if len(images) > 0 {
		names := make([]any, len(images))
		for i := range images {
			names[i] = images[i]
		}
		u.Object["status"] = map[string]any{"images": []any{map[string]any{"names": names}}}
	}
	return u
}

func tainted(node *unstructured.Unstructured) *unstructured.Unstructured {
	node.Object["spec"] = map[string]any{"taints": []any{map[string]any{"key": "going", "effect": "NoExecute"}}}
	return node
}

func podNamed(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
}

// tolerating is a pod that tolerates the taint of nodes that leave.
func tolerating(name string, seconds *int64) *corev1.Pod {
	pod := podNamed(name)
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "going", Operator: corev1.TolerationOpExists, TolerationSeconds: seconds}}
	return pod
}

func nodeList(names ...string) *corev1.NodeList {
	list := &corev1.NodeList{}
	for _, name := range names {
		list.Items = append(list.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list
}

func TestFilter(t *testing.T) {
	all := []string{"a1", "leaving", "nobody-knows"}
	stays := []string{"a1", "nobody-knows"}
	failing := func(why string) extenderv1.FailedNodesMap {
		return extenderv1.FailedNodesMap{"a1": why, "leaving": why, "nobody-knows": why}
	}
	leaving := extenderv1.FailedNodesMap{"leaving": NodeLeaving}
	none := []string{}
	cases := map[string]struct {
		args extenderv1.ExtenderArgs
		err  error
		want extenderv1.ExtenderFilterResult
		as   outcome
	}{
		"another's pod": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("other"), NodeNames: &all},
			want: extenderv1.ExtenderFilterResult{NodeNames: &all, FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}, as: passed,
		},
		"a stale member": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("stale"), NodeNames: &all},
			want: extenderv1.ExtenderFilterResult{NodeNames: &none, FailedAndUnresolvableNodes: failing(StaleMember + " (is v1-a, in force is v1-b)")}, as: refused,
		},
		"of a revision that nobody knows": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("unknown"), NodeNames: &all},
			want: extenderv1.ExtenderFilterResult{NodeNames: &none, FailedAndUnresolvableNodes: failing(StaleMember + " (is unknown, in force is v1-b)")}, as: refused,
		},
		"of a member that is gone": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("gone"), NodeNames: &all},
			want: extenderv1.ExtenderFilterResult{NodeNames: &none, FailedAndUnresolvableNodes: failing(StaleMember)}, as: refused,
		},
		"a fresh member": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("fresh"), NodeNames: &all},
			want: extenderv1.ExtenderFilterResult{NodeNames: &stays, FailedAndUnresolvableNodes: leaving}, as: filtered,
		},
		"a fresh member that tolerates the taint": {
			args: extenderv1.ExtenderArgs{Pod: tolerating("fresh", nil), NodeNames: &all},
			want: extenderv1.ExtenderFilterResult{NodeNames: &all, FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}, as: passed,
		},
		"a fresh member that tolerates it for a while": {
			args: extenderv1.ExtenderArgs{Pod: tolerating("fresh", ptr.To(int64(60))), NodeNames: &all},
			want: extenderv1.ExtenderFilterResult{NodeNames: &stays, FailedAndUnresolvableNodes: leaving}, as: filtered,
		},
		"a stale member, nodes in full": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("stale"), Nodes: nodeList("a1")},
			want: extenderv1.ExtenderFilterResult{
				Nodes:                      &corev1.NodeList{Items: []corev1.Node{}},
				FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{"a1": StaleMember + " (is v1-a, in force is v1-b)"},
			}, as: refused,
		},
		"a fresh member, nodes in full": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("fresh"), Nodes: nodeList(all...)},
			want: extenderv1.ExtenderFilterResult{Nodes: nodeList(stays...), FailedAndUnresolvableNodes: leaving}, as: filtered,
		},
		"both forms": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("fresh"), Nodes: nodeList(all...), NodeNames: &all},
			want: extenderv1.ExtenderFilterResult{Nodes: nodeList(stays...), NodeNames: &stays, FailedAndUnresolvableNodes: leaving}, as: filtered,
		},
		"no pod": {
			args: extenderv1.ExtenderArgs{NodeNames: &all},
			want: extenderv1.ExtenderFilterResult{NodeNames: &all, FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}, as: passed,
		},
		"no nodes": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("stale")},
			want: extenderv1.ExtenderFilterResult{FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}, as: refused,
		},
		"nobody can tell": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("other"), NodeNames: &all}, err: errors.New("the cache is empty"),
			want: extenderv1.ExtenderFilterResult{NodeNames: &all, FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}, as: undecided,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newExtender(members{dispositions: known, err: tc.err})
			if diff := cmp.Diff(&tc.want, e.Filter(t.Context(), &tc.args)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if n := testutil.ToFloat64(e.Metrics.requests.WithLabelValues(verbFilter, string(tc.as))); n != 1 {
				t.Errorf("%v requests counted as %s, want 1", n, tc.as)
			}
		})
	}
}

func TestPreempt(t *testing.T) {
	full := map[string]*extenderv1.Victims{
		"a1": {Pods: []*corev1.Pod{podNamed("victim"), nil}, NumPDBViolations: 3}, "leaving": {Pods: []*corev1.Pod{podNamed("other")}}, "b1": nil,
	}
	meta := map[string]*extenderv1.MetaVictims{
		"a1": {Pods: []*extenderv1.MetaPod{{UID: "uid-victim"}, nil}, NumPDBViolations: 3}, "leaving": {Pods: []*extenderv1.MetaPod{{UID: "uid-other"}}}, "b1": nil,
	}
	all := map[string]*extenderv1.MetaVictims{
		"a1": {Pods: []*extenderv1.MetaPod{{UID: "uid-victim"}}, NumPDBViolations: 3}, "leaving": {Pods: []*extenderv1.MetaPod{{UID: "uid-other"}}},
		"b1": {Pods: []*extenderv1.MetaPod{}},
	}
	stays := map[string]*extenderv1.MetaVictims{"a1": all["a1"], "b1": all["b1"]}
	cases := map[string]struct {
		args extenderv1.ExtenderPreemptionArgs
		err  error
		want map[string]*extenderv1.MetaVictims
	}{
		"another's pod, in full": {args: extenderv1.ExtenderPreemptionArgs{Pod: podNamed("other"), NodeNameToVictims: full}, want: all},
		"another's pod":          {args: extenderv1.ExtenderPreemptionArgs{Pod: podNamed("other"), NodeNameToMetaVictims: meta}, want: all},
		"no pod":                 {args: extenderv1.ExtenderPreemptionArgs{NodeNameToMetaVictims: meta}, want: all},
		"nobody can tell":        {args: extenderv1.ExtenderPreemptionArgs{Pod: podNamed("other"), NodeNameToMetaVictims: meta}, err: errors.New("the cache is empty"), want: all},
		"a stale member":         {args: extenderv1.ExtenderPreemptionArgs{Pod: podNamed("stale"), NodeNameToMetaVictims: meta}, want: map[string]*extenderv1.MetaVictims{}},
		"a stale member, full":   {args: extenderv1.ExtenderPreemptionArgs{Pod: podNamed("stale"), NodeNameToVictims: full}, want: map[string]*extenderv1.MetaVictims{}},
		"a fresh member":         {args: extenderv1.ExtenderPreemptionArgs{Pod: podNamed("fresh"), NodeNameToMetaVictims: meta}, want: stays},
		"tolerates the taint":    {args: extenderv1.ExtenderPreemptionArgs{Pod: tolerating("fresh", nil), NodeNameToVictims: full}, want: all},
		"tolerates it a while":   {args: extenderv1.ExtenderPreemptionArgs{Pod: tolerating("fresh", ptr.To(int64(60))), NodeNameToVictims: full}, want: stays},
		"nothing":                {args: extenderv1.ExtenderPreemptionArgs{Pod: podNamed("other")}, want: map[string]*extenderv1.MetaVictims{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := newExtender(members{dispositions: known, err: tc.err}).Preempt(t.Context(), &tc.args)
			if diff := cmp.Diff(tc.want, got.NodeNameToMetaVictims); diff != "" {
				t.Errorf("victims (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestPrioritize(t *testing.T) {
	names := []string{"a1", "b1"}
	cases := map[string]struct {
		args    extenderv1.ExtenderArgs
		members members
		weights *Weights
		want    extenderv1.HostPriorityList
	}{
		"another's pod": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("other"), NodeNames: &names}, members: members{dispositions: known},
			want: extenderv1.HostPriorityList{{Host: "a1"}, {Host: "b1"}},
		},
		"away from where the pool is": {
			args:    extenderv1.ExtenderArgs{Pod: podNamed("fresh"), NodeNames: &names},
			members: members{dispositions: known, placed: map[types.UID]string{"x": "a1"}},
			want:    extenderv1.HostPriorityList{{Host: "a1", Score: 0}, {Host: "b1", Score: 10}},
		},
		"its own node does not count": {
			args:    extenderv1.ExtenderArgs{Pod: podNamed("fresh"), Nodes: nodeList("a1", "b1")},
			members: members{dispositions: known, placed: map[types.UID]string{"uid-fresh": "a1", "x": "b1"}},
			want:    extenderv1.HostPriorityList{{Host: "a1", Score: 10}, {Host: "b1", Score: 0}},
		},
		"turned off": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("fresh"), NodeNames: &names}, members: members{dispositions: known}, weights: &Weights{},
			want: extenderv1.HostPriorityList{{Host: "a1"}, {Host: "b1"}},
		},
		"no nodes": {
			args: extenderv1.ExtenderArgs{Pod: podNamed("fresh")}, members: members{dispositions: known}, want: extenderv1.HostPriorityList{},
		},
		"no pod": {args: extenderv1.ExtenderArgs{NodeNames: &names}, want: extenderv1.HostPriorityList{{Host: "a1"}, {Host: "b1"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newExtender(tc.members)
			if tc.weights != nil {
				e.Weights = *tc.weights
			}
			if diff := cmp.Diff(&tc.want, e.Prioritize(t.Context(), &tc.args)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// The scheduler asks for the next pod before any cache shows the last one: also
// where only one node was left, of which it asks nobody's opinion.
func TestPodsThatNoCacheShowsYetCount(t *testing.T) {
	one, both := []string{"a1"}, []string{"a1", "b1"}
	dispositions := map[string]freshness.PodDisposition{}
	for _, name := range []string{"m1", "m2", "m3"} {
		dispositions[name] = freshness.PodDisposition{Pool: "python", PoolUID: "p"}
	}
	e := newExtender(members{dispositions: dispositions})
	best := func(pod string) string {
		e.Filter(t.Context(), &extenderv1.ExtenderArgs{Pod: podNamed(pod), NodeNames: &both})
		for _, s := range *e.Prioritize(t.Context(), &extenderv1.ExtenderArgs{Pod: podNamed(pod), NodeNames: &both}) {
			if s.Score == extenderv1.MaxExtenderPriority {
				return s.Host
			}
		}
		return ""
	}
	e.Filter(t.Context(), &extenderv1.ExtenderArgs{Pod: podNamed("m1"), NodeNames: &one})
	if got := best("m2"); got != "b1" {
		t.Errorf("the second pod goes to %q, want b1: the first had only a1", got)
	}
	e.Filter(t.Context(), &extenderv1.ExtenderArgs{Pod: podNamed("m3"), NodeNames: &one})
	if got := best("m2"); got != "b1" {
		t.Errorf("the second pod, tried again, goes to %q, want b1: it does not stand in its own way", got)
	}
}

// The scheduler asks about preemption right after the filter. What became fine in
// between is refused once more: on a node that it needs nobody has to leave.
func TestPreemptAgreesWithTheFilterBefore(t *testing.T) {
	dispositions := map[string]freshness.PodDisposition{"m": known["stale"]}
	e := newExtender(members{dispositions: dispositions})
	names := []string{"a1"}
	preempts := func() int {
		return len(e.Preempt(t.Context(), &extenderv1.ExtenderPreemptionArgs{
			Pod: podNamed("m"), NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{"b1": {}},
		}).NodeNameToMetaVictims)
	}
	filter := func() { e.Filter(t.Context(), &extenderv1.ExtenderArgs{Pod: podNamed("m"), NodeNames: &names}) }
	filter()
	dispositions["m"] = known["fresh"]
	if n := preempts(); n != 0 {
		t.Errorf("%d nodes to evict from, want none: the filter has just refused the pod", n)
	}
	if n := preempts(); n != 1 {
		t.Errorf("%d nodes to evict from the next time, want 1", n)
	}
	dispositions["m"] = known["stale"]
	filter()
	dispositions["m"] = known["fresh"]
	filter()
	if n := preempts(); n != 1 {
		t.Errorf("%d nodes to evict from after the filter let the pod pass, want 1", n)
	}
}
