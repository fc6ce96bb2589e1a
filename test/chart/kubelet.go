package chart

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/freshbind/freshbind/test/fixture"
)

// kubeletDelay is how late the endpoints leave out who is not ready any more. Who becomes
// ready is asked at once: that can only show more.
const kubeletDelay = 2 * time.Second

// kubelet plays kubelet and endpoint controller for the replicas.
type kubelet struct {
	client client.Client

	mu       sync.Mutex
	replicas []*replica
	// published are the endpoints; nil where they have to be written in any case.
	published []string
	// outages are those of replicas that lost their lease.
	outages []outage
}

// outage is when a replica served nothing; it has not ended where to is zero.
type outage struct {
	address  string
	from, to time.Time
}

// lastServed is how long before the last answer to a probe a replica that ends may have ended its webhooks: it goes on to
// answer probes while calls that are under way are completed.
const lastServed = 15 * time.Second

// leaseLost notes that a replica ends. It may be told so again until the replica is back.
func (k *kubelet) leaseLost(r *replica) {
	if !slices.ContainsFunc(k.outages, func(o outage) bool { return o.address == r.address && o.to.IsZero() }) {
		k.outages = append(k.outages, outage{address: r.address, from: r.seen.Add(-lastServed)})
	}
}

// served notes that a replica is ready.
func (k *kubelet) served(r *replica, now time.Time) {
	r.seen = now
	for i := range k.outages {
		if o := &k.outages[i]; o.address == r.address && o.to.IsZero() {
			o.to = now
		}
	}
}

// leasesLost counts how often a replica has lost its lease.
func (k *kubelet) leasesLost(r *replica) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range k.outages {
		if o.address == r.address {
			n++
		}
	}
	return n
}

// without reports whether a replica that had lost its lease served nothing at that time.
func (k *kubelet) without(at time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.outages, func(o outage) bool { return at.After(o.from) && (o.to.IsZero() || at.Before(o.to)) })
}

// run probes until ctx ends, and publishes who was ready in the last kubeletDelay.
func (k *kubelet) run(ctx context.Context) {
	lastReady := map[string]time.Time{}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		k.restart(ctx)
		now := time.Now()
		for _, address := range k.readyNow(ctx) {
			lastReady[address] = now
		}
		maps.DeleteFunc(lastReady, func(_ string, at time.Time) bool { return now.Sub(at) >= kubeletDelay })
		k.keep(ctx, slices.Sorted(maps.Keys(lastReady)))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keep publishes who is ready, if that is not there yet.
func (k *kubelet) keep(ctx context.Context, ready []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.published != nil && slices.Equal(ready, k.published) {
		return
	}
	// The next look tries again.
	if err := k.publish(ctx, ready); err == nil {
		k.published = append([]string{}, ready...)
	}
}

func (k *kubelet) readyNow(ctx context.Context) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	ready := []string{}
	for _, r := range k.replicas {
		if !r.leaving && r.process != nil && r.ready(ctx) {
			ready = append(ready, r.address)
			k.served(r, time.Now())
		}
	}
	return ready
}

// publish writes who is ready as API servers read it: from Endpoints before
// Kubernetes 1.33, and from EndpointSlices since. The Service may be gone, or not there yet.
func (k *kubelet) publish(ctx context.Context, ready []string) error {
	if err := k.publishEndpoints(ctx, ready); err != nil {
		return err
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: release, Namespace: namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, k.client, slice, func() error {
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: release}
		slice.AddressType = discoveryv1.AddressTypeIPv4
		slice.Ports = []discoveryv1.EndpointPort{{
			Name: ptr.To("webhook"), Port: ptr.To[int32](webhookPort), Protocol: ptr.To(corev1.ProtocolTCP),
		}}
		slice.Endpoints = nil
		for _, address := range ready {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
			})
		}
		return nil
	})
	return err
}

func (k *kubelet) publishEndpoints(ctx context.Context, ready []string) error {
	//nolint:staticcheck // Deprecated since 1.33, and the only kind that older API servers read.
	endpoints, subset := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: release, Namespace: namespace}}, corev1.EndpointSubset{
		Ports: []corev1.EndpointPort{{Name: "webhook", Port: webhookPort, Protocol: corev1.ProtocolTCP}},
	}
	for _, address := range ready {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: address})
	}
	_, err := controllerutil.CreateOrUpdate(ctx, k.client, endpoints, func() error {
		endpoints.Subsets = nil
		if len(ready) > 0 {
			//nolint:staticcheck // As above.
			endpoints.Subsets = []corev1.EndpointSubset{subset}
		}
		return nil
	})
	return err
}

// start runs a replica.
func (k *kubelet) start(ctx context.Context, r *replica) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	// The namespace may be another one.
	k.published = nil
	r.down = false
	return r.start(ctx, k.client)
}

// stop ends a replica, for good. It kills what has more to do than any release here allows.
func (k *kubelet) stop(r *replica) error {
	k.mu.Lock()
	r.down = true
	process := r.process
	k.mu.Unlock()
	return process.StopWithin(within)
}

// kill ends a replica without a word, for good.
func (k *kubelet) kill(r *replica) error {
	k.mu.Lock()
	r.down = true
	process := r.process
	k.mu.Unlock()
	if err := syscall.Kill(process.PID(), syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill replica %s: %w", r.address, err)
	}
	<-process.Done()
	return nil
}

// restart starts replicas again that have ended so, as a kubelet does: on a machine
// that stands still for a moment nobody can help it. Who ends otherwise stays down.
func (k *kubelet) restart(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.replicas {
		if r.down || r.process == nil {
			continue
		}
		if r.process.EndedWith(fixture.LeaseLost) {
			fmt.Fprintf(os.Stderr, "%s is started again: %s\n", r.process.Name, fixture.LeaseLost)
			k.leaseLost(r)
			// The next look tries again.
			_ = r.start(ctx, k.client)
		}
	}
}

// leave is what a deleted Pod does to its replica: out of the endpoints first.
func (k *kubelet) leave(r *replica) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r.leaving = true
}
