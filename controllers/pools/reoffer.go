package pools

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/managed"
	"github.com/freshbind/freshbind/internal/platform"
)

const (
	// reofferAfter is how long after a cold start a member that was there
	// when it happened has to be still there for it to be offered again.
	reofferAfter = 2 * time.Second
	// nextOffer is how long such a member is left alone after its first
	// offer; each further one takes three times as long.
	nextOffer = 5 * time.Second
	// offersKept bounds how many members' offers are remembered.
	offersKept = 4096
)

// Reofferer offers members that stood there while a claim of their pool was
// cold-started: upstream forgot them, by dropping them without a write that
// could be refused, or before this process was there. It runs on every replica,
// because only the one that allowed the cold start knows of it.
type Reofferer struct {
	cache     client.Reader
	sandboxes schema.GroupVersionKind
	members   MetadataOfPools
	note      func(*unstructured.Unstructured, freshness.Fault)
	hints     hints.Queue[SkippedPool]
	offered   *lru.Cache
	clock     clock.PassiveClock
}

// MetadataOfPools finds members, and tells whose they are and which are shown.
type MetadataOfPools interface {
	platform.Owners
	platform.Selectors
	platform.Metadata
}

// SkippedPool is a pool that a claim passed over, and when, in seconds since 1970.
type SkippedPool struct {
	types.NamespacedName
	At int64
}

// offer is how often, and when last, a member was offered.
type offer struct {
	times int
	last  time.Time
}

// SetupReofferer adds the controller to the manager. sandboxes are watched by
// their metadata in any case.
func SetupReofferer(mgr manager.Manager, sandboxes schema.GroupVersionKind, found MetadataOfPools, refused *Refused) (*Reofferer, error) {
	o := &Reofferer{
		cache: mgr.GetCache(), sandboxes: sandboxes, members: found, note: refused.Note,
		hints: hints.New[SkippedPool](), offered: lru.New(offersKept), clock: clock.RealClock{},
	}
	err := managed.Controller(mgr, "reoffer", controller.TypedOptions[SkippedPool]{NeedLeaderElection: ptr.To(false)}).
		WatchesRawSource(source.TypedFunc[SkippedPool](o.hints.Feed)).Complete(o)
	if err != nil {
		return nil, fmt.Errorf("setting up the controller that offers members again: %w", err)
	}
	return o, nil
}

// Note tells that a claim which could have had a member of the pool was
// cold-started.
func (o *Reofferer) Note(namespace, pool string) {
	o.hints.Note(SkippedPool{types.NamespacedName{Namespace: namespace, Name: pool}, o.clock.Now().Unix()}, reofferAfter)
}

// Reconcile offers what is still there of a pool that was passed over.
func (o *Reofferer) Reconcile(ctx context.Context, p SkippedPool) (reconcile.Result, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(listOf(o.sandboxes))
	err := o.cache.List(ctx, list, client.InNamespace(p.Namespace),
		client.MatchingLabelsSelector{Selector: o.members.MembersOf(p.Name)})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("listing members of pool %s: %w", p, err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		// A label may say another thing than the owner, or nothing.
		owner := metav1.GetControllerOfNoCopy(m)
		if owner == nil || !o.members.IsPool(owner) || owner.Name != p.Name {
			continue
		}
		shown := o.members.IsShown(m)
		if shown && m.CreationTimestamp.Unix() < p.At && m.DeletionTimestamp == nil && o.due(m.UID) {
			u := &unstructured.Unstructured{}
			u.SetNamespace(m.Namespace)
			u.SetName(m.Name)
			u.SetUID(m.UID)
			o.note(u, freshness.FaultNobody)
		}
	}
	return reconcile.Result{}, nil
}

// due reports whether the member may be offered now, and notes that it is.
func (o *Reofferer) due(uid types.UID) bool {
	was := offer{}
	if v, ok := o.offered.Get(uid); ok {
		was = v.(offer)
	}
	wait := nextOffer
	for range was.times - 1 {
		wait *= 3
	}
	if was.times > 0 && o.clock.Since(was.last) < wait {
		return false
	}
	o.offered.Add(uid, offer{min(was.times+1, 6), o.clock.Now()})
	return true
}
