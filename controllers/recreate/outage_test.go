package recreate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

func TestAnOutageIsLookedForOnceInAWhile(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(now)
	lists := &nodeLists{err: errors.New("etcd is away")}
	o := NewOutage(lists, c)
	for i, tc := range []struct {
		after time.Duration
		nodes []unstructured.Unstructured
		err   error
		want  bool
		reads int
	}{
		{0, nil, lists.err, false, 1},
		{0, nodesOf(0, 2), nil, true, 2},
		{outageKept - 1, nodesOf(2, 0), nil, true, 2},
		{outageKept, nodesOf(2, 0), nil, false, 3},
	} {
		c.SetTime(now.Add(tc.after))
		lists.nodes, lists.err = tc.nodes, tc.err
		got, err := o.Now(t.Context())
		if got != tc.want || (err != nil) != (tc.err != nil) || lists.reads != tc.reads {
			t.Errorf("step %d: Now() = %t, %v after %d reads, want %t, %v after %d", i, got, err, lists.reads, tc.want, tc.err, tc.reads)
		}
	}
}
