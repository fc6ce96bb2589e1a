package recreate

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
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
			if owner == nil || !agentsandbox.IsPoolOwner(owner) {
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

// listingKept is how old a list may be that all pools of a namespace share.
const listingKept = 5 * time.Second

// listings are those of namespaces that a new leader made for all pools in one.
type listings struct {
	mu    sync.Mutex
	kept  map[string]*listing
	taken map[string]time.Time
}

// ProvenOnce is Proven for a leader that knows nothing yet: any list will do that
// was made since it leads, so that all pools of a namespace share one.
func (v *View) ProvenOnce(ctx context.Context, pool *unstructured.Unstructured, now time.Time) (bool, error) {
	l, err := v.shared(ctx, pool.GetNamespace(), now)
	return err == nil && v.shows(pool, l), err
}

func (v *View) shared(ctx context.Context, namespace string, now time.Time) (*listing, error) {
	s := &v.listings
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, at := range s.taken {
		if now.Sub(at) >= listingKept {
			delete(s.kept, other)
			delete(s.taken, other)
		}
	}
	if l := s.kept[namespace]; l != nil {
		return l, nil
	}
	pooled, err := labels.NewRequirement(agentsandbox.WarmPoolLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting members: %w", err)
	}
	l, err := v.list(ctx, namespace, labels.NewSelector().Add(*pooled))
	if err != nil {
		return nil, err
	}
	if s.kept == nil {
		s.kept, s.taken = map[string]*listing{}, map[string]time.Time{}
	}
	s.kept[namespace], s.taken[namespace] = l, now
	// Nobody asks any more once every pool is proven.
	time.AfterFunc(2*listingKept, func() { s.drop(namespace, l) })
	return l, nil
}

func (s *listings) drop(namespace string, l *listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[namespace] == l {
		delete(s.kept, namespace)
		delete(s.taken, namespace)
	}
}
