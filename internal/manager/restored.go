package manager

import (
	"context"
	"errors"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// errRestored ends the process, so that it starts anew.
var errRestored = errors.New("the resourceVersion of the lease went back, so etcd was restored from a snapshot: this process knows a past that is no more, and ends")

// storeHistory notices by the lease that what is stored went back to an earlier state.
// Caches show what was lost then, for as long as the process lives: an API server takes a
// watch from a resourceVersion that has not come yet, and has nothing to tell until it
// does. Every replica reads or writes the lease every few seconds anyway, and each of its
// versions is a later one than the last.
type storeHistory struct {
	mu       sync.Mutex
	newest   string
	went     bool
	restored chan struct{}
}

func newStoreHistory() *storeHistory { return &storeHistory{restored: make(chan struct{})} }

// note compares an answer with the one before. One that is older is an error, and so is
// every later one: nobody leads who knows another past.
func (h *storeHistory) note(l *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.went:
		return nil, errRestored
	case err != nil:
		return nil, err
	case h.newest == "":
	default:
		// Where versions have no order nobody can tell.
		if order, unordered := resourceversion.CompareResourceVersion(l.ResourceVersion, h.newest); unordered == nil && order < 0 {
			h.went = true
			close(h.restored)
			return nil, errRestored
		}
	}
	h.newest = l.ResourceVersion
	return l, nil
}

var _ manager.LeaderElectionRunnable = (*storeHistory)(nil)

// NeedLeaderElection is false: every replica has caches.
func (*storeHistory) NeedLeaderElection() bool { return false }

// Start fails as soon as what is stored went back.
func (h *storeHistory) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-h.restored:
		return errRestored
	}
}

// notedLeases are leases whose versions a storeHistory takes note of.
type notedLeases struct {
	coordinationclient.LeasesGetter
	history *storeHistory
}

func (n notedLeases) Leases(namespace string) coordinationclient.LeaseInterface {
	return notedLease{n.LeasesGetter.Leases(namespace), n.history}
}

type notedLease struct {
	coordinationclient.LeaseInterface
	history *storeHistory
}

func (n notedLease) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	return n.history.note(n.LeaseInterface.Get(ctx, name, o))
}

func (n notedLease) Create(ctx context.Context, l *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return n.history.note(n.LeaseInterface.Create(ctx, l, o))
}

func (n notedLease) Update(ctx context.Context, l *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return n.history.note(n.LeaseInterface.Update(ctx, l, o))
}
