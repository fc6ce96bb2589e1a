package pools

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/platform"
)

const (
	// outageShare, in percent, of all nodes not being ready, and more than outageMore of them,
	// says more about the network than about the nodes; kube-controller-manager
	// then stops evicting (--unhealthy-zone-threshold, and ComputeZoneState in
	// pkg/controller/nodelifecycle/node_lifecycle_controller.go).
	outageShare = 55
	outageMore  = 2
	// outageKept is how long an outage is taken to last at least.
	outageKept = 5 * time.Second
)

// Outage knows whether so many nodes are not ready that none is to be given up
// for it: all members of all pools would go, and none could come. A nil *Outage
// never is one.
type Outage struct {
	nodes client.Reader
	clock clock.PassiveClock

	mu   sync.Mutex
	at   time.Time
	down bool
}

// NewOutage reads nodes from a cache.
func NewOutage(nodes client.Reader, c clock.PassiveClock) *Outage {
	return &Outage{nodes: nodes, clock: c}
}

// Outage returns one by the nodes that the view shows.
func (v *View) Outage() *Outage { return NewOutage(v.cache, clock.RealClock{}) }

// spares reports whether a member is kept for now although its node, as it was
// read, is about to go. While the cache does not show that node as it was read, or
// later, it may show others ready that are not: nobody knows then whether there is
// an outage, and the member is kept.
func (o *Outage) spares(ctx context.Context, v freshness.Verdict, node *platform.Node) (bool, error) {
	if o == nil || v.Reason != freshness.NodeLeaving {
		return false, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	if o.down && now.Sub(o.at) < outageKept {
		return true, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listOf(nodeKind))
	if err := o.nodes.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing nodes: %w", err)
	}
	o.at, o.down = now, outage(list.Items)
	return o.down || !showNode(list.Items, node), nil
}

// showNode reports whether the nodes show the one that was read as it was then, or
// later.
func showNode(nodes []unstructured.Unstructured, read *platform.Node) bool {
	if read == nil {
		return true
	}
	i := slices.IndexFunc(nodes, func(n unstructured.Unstructured) bool { return n.GetName() == read.Name })
	if i < 0 {
		return read.ResourceVersion == ""
	}
	return read.ResourceVersion != "" && !older(nodes[i].GetResourceVersion(), read.ResourceVersion)
}

func outage(nodes []unstructured.Unstructured) bool {
	ready := 0
	for i := range nodes {
		if is, _ := placement.NodeReady(&nodes[i]); is {
			ready++
		}
	}
	down := len(nodes) - ready
	return down > 0 && ready == 0 || down > outageMore && down*100 >= outageShare*len(nodes)
}
