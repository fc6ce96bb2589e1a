package pools

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

// nodesOf are so many nodes that are ready, and so many that are not.
func nodesOf(ready, down int) []unstructured.Unstructured {
	var out []unstructured.Unstructured
	for i := range ready + down {
		status := "True"
		if i >= ready {
			status = "Unknown"
		}
		u := object(nodeKind)
		u.SetName(fmt.Sprintf("n%d", i))
		u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status}}}
		out = append(out, *u)
	}
	return out
}

// A few nodes fail. When most do at once it is the network, or the control plane.
func TestOutage(t *testing.T) {
	cases := map[string]struct {
		ready, down int
		want        bool
	}{
		"no nodes":             {0, 0, false},
		"all ready":            {3, 0, false},
		"the only one":         {0, 1, true},
		"one of two":           {1, 1, false},
		"two of three":         {1, 2, false},
		"all of three":         {0, 3, true},
		"three of four":        {1, 3, true},
		"three of six":         {3, 3, false},
		"just under the share": {46, 54, false},
		"the share":            {45, 55, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := outage(nodesOf(tc.ready, tc.down)); got != tc.want {
				t.Errorf("outage() = %t, want %t", got, tc.want)
			}
		})
	}
}

type nodeLists struct {
	client.Reader
	nodes []unstructured.Unstructured
	err   error
	reads int
}

func (n *nodeLists) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	n.reads++
	into.(*unstructured.UnstructuredList).Items = n.nodes
	return n.err
}

// When most nodes fail at once, the first that is read is one of many, whatever an
// older answer said and whatever a late cache shows of the others.
func TestAMemberIsGivenUpOnlyByNodesAsTheyAre(t *testing.T) {
	at := func(rv string, nodes []unstructured.Unstructured) []unstructured.Unstructured {
		for i := range nodes {
			nodes[i].SetResourceVersion(rv)
		}
		return nodes
	}
	leaving := freshness.Verdict{Reason: freshness.NodeLeaving}
	read := func(name, rv string) *platform.Node { return &platform.Node{Name: name, ResourceVersion: rv} }
	gone := errors.New("etcd is away")
	type step struct {
		after   time.Duration
		verdict freshness.Verdict
		node    *platform.Node
		nodes   []unstructured.Unstructured
		err     error
		want    bool
		lists   int
	}
	cases := map[string][]step{
		"another reason": {{verdict: freshness.Verdict{Reason: freshness.PodNotYet}, nodes: nodesOf(0, 3)}},
		"one of many":    {{verdict: leaving, node: read("n3", "7"), nodes: at("7", nodesOf(3, 1)), lists: 1}},
		"shown later":    {{verdict: leaving, node: read("n3", "7"), nodes: at("10", nodesOf(3, 1)), lists: 1}},
		"gone":           {{verdict: leaving, node: read("n9", ""), nodes: at("7", nodesOf(3, 0)), lists: 1}},
		"not known":      {{verdict: leaving, node: read("n3", "7"), err: gone, lists: 1}},
		"a late cache": {
			{verdict: leaving, node: read("n3", "10"), nodes: at("7", nodesOf(4, 0)), want: true, lists: 1},
			{verdict: leaving, node: read("n3", "10"), nodes: at("10", nodesOf(3, 1)), lists: 2},
		},
		"a late cache that has it still": {{verdict: leaving, node: read("n3", ""), nodes: at("7", nodesOf(4, 0)), want: true, lists: 1}},
		"a late cache that lacks it":     {{verdict: leaving, node: read("n4", "10"), nodes: at("7", nodesOf(4, 0)), want: true, lists: 1}},
		"good news are never old": {
			{verdict: leaving, node: read("n3", "7"), nodes: at("7", nodesOf(3, 1)), lists: 1},
			{verdict: leaving, node: read("n2", "8"), nodes: at("8", nodesOf(1, 3)), want: true, lists: 2},
		},
		"bad news are for a while": {
			{verdict: leaving, node: read("n3", "7"), nodes: at("7", nodesOf(1, 3)), want: true, lists: 1},
			{after: outageKept - 1, verdict: leaving, node: read("n3", "7"), nodes: at("7", nodesOf(3, 1)), want: true, lists: 1},
			{after: outageKept, verdict: leaving, node: read("n3", "7"), nodes: at("7", nodesOf(3, 1)), lists: 2},
		},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(now)
			lists := &nodeLists{}
			o := NewOutage(lists, c)
			for i, s := range steps {
				c.SetTime(now.Add(s.after))
				lists.nodes, lists.err = s.nodes, s.err
				got, err := o.spares(t.Context(), s.verdict, s.node)
				if got != s.want || !errors.Is(err, s.err) || lists.reads != s.lists {
					t.Errorf("step %d: spares() = %t, %v after %d lists, want %t, %v after %d", i, got, err, lists.reads, s.want, s.err, s.lists)
				}
			}
		})
	}
}
