package recreate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

const (
	// outageShare, in percent, of all nodes not being ready, and more than outageMore of them,
	// says more about the network than about the nodes; kube-controller-manager
	// then stops evicting (--unhealthy-zone-threshold, and ComputeZoneState in
	// pkg/controller/nodelifecycle/node_lifecycle_controller.go).
	outageShare = 55
	outageMore  = 2
	// outageKept is how long an answer is good for.
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

// NewOutage reads nodes from a cache, at most once in five seconds.
func NewOutage(nodes client.Reader, c clock.PassiveClock) *Outage {
	return &Outage{nodes: nodes, clock: c}
}

// Outage returns one by the nodes that the view shows.
func (v *View) Outage() *Outage { return NewOutage(v.cache, clock.RealClock{}) }

// Now reports whether there is an outage. An error says that it is not known.
func (o *Outage) Now(ctx context.Context) (bool, error) {
	if o == nil {
		return false, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.clock.Now(); o.at.IsZero() || now.Sub(o.at) >= outageKept {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(listOf(nodeKind))
		if err := o.nodes.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("listing nodes: %w", err)
		}
		o.at, o.down = now, outage(list.Items)
	}
	return o.down, nil
}

// spares reports whether a member is kept although its node is about to go.
func (o *Outage) spares(ctx context.Context, v freshness.Verdict) (bool, error) {
	if v.Reason != freshness.NodeLeaving {
		return false, nil
	}
	return o.Now(ctx)
}

func outage(nodes []unstructured.Unstructured) bool {
	ready := 0
	for i := range nodes {
		if is, _ := agentsandbox.NodeReady(&nodes[i]); is {
			ready++
		}
	}
	down := len(nodes) - ready
	return down > 0 && ready == 0 || down > outageMore && down*100 >= outageShare*len(nodes)
}
