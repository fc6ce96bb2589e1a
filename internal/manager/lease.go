package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The times of the lease are controller-runtime's defaults. A write is started
// only within renewDeadline after the last renewal; another process can have the
// lease leaseDuration after it at the earliest.
const (
	leaseName     = "freshbind"
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// lease notes when it was last renewed, by the clock of this process.
type lease struct {
	resourcelock.Interface
	clock clock.PassiveClock
	// history is told of every version.
	history *storeHistory

	mu      sync.Mutex
	renewed time.Time
}

// ownNamespace is the one that this runs in; os.ErrNotExist outside of a cluster.
func ownNamespace() (string, error) {
	raw, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "", fmt.Errorf("finding the namespace that this runs in: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// home is the lease's namespace where that is given, or else the one that this runs in; "" outside
// of a cluster.
func (o *process) home() (string, error) {
	if o.LeaderElectNamespace != "" {
		return o.LeaderElectNamespace, nil
	}
	namespace, err := ownNamespace()
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return namespace, err
}

// newLease returns the lock of the leader's lease.
func newLease(cfg *rest.Config, namespace string) (*lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this process: %w", err)
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, cfg, renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("creating the lock of the lease: %w", err)
	}
	l := &lease{Interface: lock, clock: clock.RealClock{}, history: newStoreHistory()}
	if stored, ok := lock.(*resourcelock.LeaseLock); ok {
		stored.Client = notedLeases{stored.Client, l.history}
	}
	return l, nil
}

// elect has one of the processes lead, for all platforms.
func (o *process) elect(cfg *rest.Config, options *ctrl.Options) error {
	if !o.LeaderElect {
		return nil
	}
	namespace, err := o.home()
	if err != nil {
		return err
	}
	if namespace == "" {
		return errors.New("--leader-election-namespace: required outside of a cluster (or set --leader-elect=false)")
	}
	l, err := newLease(cfg, namespace)
	if err != nil {
		return err
	}
	o.leads, o.history = l.held, l.history
	options.LeaderElection, options.LeaderElectionReleaseOnCancel = true, true
	options.LeaderElectionResourceLockInterface = l
	// With a lock of ours this only names the leader in metrics.
	options.LeaderElectionID = leaseName
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = ptr.To(leaseDuration), ptr.To(renewDeadline), ptr.To(retryPeriod)
	return nil
}

// Create and Update are how the lease is got and renewed. The time counts from
// before the request: that is when the others count from at the earliest.
func (l *lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.note(r, func() error { return l.Interface.Create(ctx, r) })
}

func (l *lease) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.note(r, func() error { return l.Interface.Update(ctx, r) })
}

func (l *lease) note(r resourcelock.LeaderElectionRecord, write func() error) error {
	at := l.clock.Now()
	if err := write(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed = at; r.HolderIdentity != l.Identity() {
		l.renewed = time.Time{}
	}
	return nil
}

// held reports whether nobody else can have the lease.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && l.clock.Since(l.renewed) < renewDeadline
}
