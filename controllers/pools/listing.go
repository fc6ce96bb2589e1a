package pools

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listing is what a consistent list showed: the resourceVersions of members, by
// the UIDs of their pools, and its own.
type listing struct {
	members map[types.UID]map[types.UID]string
	at      string
}

// list asks etcd for the metadata of members.
func (v *View) list(ctx context.Context, namespace string, selector labels.Selector) (*listing, error) {
	out := &listing{members: map[types.UID]map[types.UID]string{}}
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(listOf(v.kinds.Sandboxes))
	options := &client.ListOptions{Namespace: namespace, Limit: pageSize, LabelSelector: selector}
	for {
		if err := v.lists.List(ctx, page, options); err != nil {
			return nil, fmt.Errorf("listing members in namespace %s: %w", namespace, err)
		}
		for i := range page.Items {
			m := &page.Items[i]
			owner := metav1.GetControllerOfNoCopy(m)
			if owner == nil || !v.objects.IsPool(owner) {
				continue
			}
			if out.members[owner.UID] == nil {
				out.members[owner.UID] = map[types.UID]string{}
			}
			out.members[owner.UID][m.UID] = m.ResourceVersion
		}
		if options.Continue = page.Continue; options.Continue == "" {
			out.at = page.ResourceVersion
			return out, nil
		}
	}
}

// listingKept is how long a list is shared at least, from when it is complete. One
// that took long is shared for twice as long as that, so that at 50,000 members a
// takeover does not do nothing but list.
const listingKept = 5 * time.Second

// listings are those of namespaces that a new leader made for all pools in one.
type listings struct {
	flights singleflight.Group

	mu   sync.Mutex
	kept map[string]sharedListing
}

type sharedListing struct {
	*listing
	until time.Time
}

// ProvenOnce is Proven for a leader that knows nothing yet: any list will do that
// was made since it leads, so that all pools of a namespace share one.
func (v *View) ProvenOnce(ctx context.Context, pool *unstructured.Unstructured, c clock.PassiveClock) (bool, error) {
	l, err := v.shared(ctx, pool.GetNamespace(), c)
	return err == nil && v.shows(pool, l), err
}

func (v *View) shared(ctx context.Context, namespace string, c clock.PassiveClock) (*listing, error) {
	s := &v.listings
	if l := s.get(namespace); l != nil {
		return l, nil
	}
	l, err, _ := s.flights.Do(namespace, func() (any, error) {
		// It may have come between.
		if l := s.get(namespace); l != nil {
			return l, nil
		}
		started := c.Now()
		l, err := v.list(ctx, namespace, v.objects.PooledMembers())
		if err != nil {
			return nil, err
		}
		s.keep(namespace, sharedListing{l, c.Now().Add(max(listingKept, 2*c.Since(started)))})
		return l, nil
	})
	if err != nil {
		return nil, err
	}
	return l.(*listing), nil
}

// get returns the list of a namespace; nil for none.
func (s *listings) get(namespace string) *listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[namespace].listing
}

func (s *listings) keep(namespace string, l sharedListing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]sharedListing{}
	}
	s.kept[namespace] = l
}

// trim lets go of what is kept for too long. Once every pool is proven nobody asks
// for a list any more, so that this is what ends it.
func (s *listings) trim(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kept, func(_ string, l sharedListing) bool { return !now.Before(l.until) })
}
