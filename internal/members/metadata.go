package members

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metadata makes the metadata of Sandboxes out of a Store.
type metadata struct {
	store *Store
	kind  schema.GroupVersionKind

	mu sync.RWMutex
	// indexes are those of fields: the Sandboxes by the values of each.
	indexes map[string]*index
}

type index struct {
	extract client.IndexerFunc
	values  map[string]map[types.NamespacedName]*Member
}

func newMetadata(store *Store, kind schema.GroupVersionKind) *metadata {
	return &metadata{store: store, kind: kind, indexes: map[string]*index{}}
}

// of makes a copy that may be changed, but for the maps and lists in it.
func (d *metadata) of(m *Member) *metav1.PartialObjectMetadata {
	if m == nil {
		return nil
	}
	out := &metav1.PartialObjectMetadata{ObjectMeta: m.Metadata()}
	out.SetGroupVersionKind(d.kind)
	return out
}

func (d *metadata) addIndex(field string, extract client.IndexerFunc) error {
	d.mu.Lock()
	_, known := d.indexes[field]
	x := &index{extract: extract, values: map[string]map[types.NamespacedName]*Member{}}
	d.indexes[field] = x
	d.mu.Unlock()
	if known {
		return fmt.Errorf("indexing sandboxes: %s is an index already", field)
	}
	d.store.HandleSandboxes(func(old, now *Member) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if old != nil {
			for _, value := range extract(d.of(old)) {
				if delete(x.values[value], keyOf(old)); len(x.values[value]) == 0 {
					delete(x.values, value)
				}
			}
		}
		if now == nil {
			return
		}
		for _, value := range extract(d.of(now)) {
			if x.values[value] == nil {
				x.values[value] = map[types.NamespacedName]*Member{}
			}
			x.values[value][keyOf(now)] = now
		}
	})
	return nil
}

// find returns the Sandboxes that options select.
func (d *metadata) find(o *client.ListOptions) ([]*Member, error) {
	selector := o.LabelSelector
	if selector == nil {
		selector = labels.Everything()
	}
	var found []*Member
	if o.FieldSelector == nil || o.FieldSelector.Empty() {
		found = d.store.Sandboxes(o.Namespace)
	} else {
		wanted := o.FieldSelector.Requirements()
		d.mu.RLock()
		x := d.indexes[wanted[0].Field]
		if x != nil {
			found = slices.Collect(maps.Values(x.values[wanted[0].Value]))
		}
		d.mu.RUnlock()
		if x == nil || len(wanted) > 1 {
			return nil, fmt.Errorf("listing sandboxes: there is no index for %s", o.FieldSelector)
		}
	}
	return slices.DeleteFunc(found, func(m *Member) bool {
		return o.Namespace != "" && m.GetNamespace() != o.Namespace || !selector.Matches(labels.Set(m.Labels))
	}), nil
}

// isMetadata reports whether obj asks for the metadata of Sandboxes.
func (c *Cache) isMetadata(obj client.Object) bool {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	return ok && m.GroupVersionKind() == c.kind
}

// Get reads one object.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if !c.isMetadata(obj) {
		return c.Cache.Get(ctx, key, obj, opts...)
	}
	if err := c.readable(ctx); err != nil {
		return err
	}
	m := c.Sandbox(key)
	if m == nil {
		return apierrors.NewNotFound(c.resource.GroupResource(), key.Name)
	}
	c.metadata.of(m).DeepCopyInto(obj.(*metav1.PartialObjectMetadata))
	return nil
}

// isKindOf reports whether a list is of Sandboxes; its kind may be theirs, as for
// any cache of controller-runtime.
func (c *Cache) isKindOf(list *metav1.PartialObjectMetadataList) bool {
	gvk := list.GroupVersionKind()
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk == c.kind
}

// List reads many objects.
func (c *Cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	into, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok || !c.isKindOf(into) {
		return c.Cache.List(ctx, list, opts...)
	}
	if err := c.readable(ctx); err != nil {
		return err
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	found, err := c.metadata.find(&o)
	if err != nil {
		return err
	}
	into.Items = make([]metav1.PartialObjectMetadata, 0, len(found))
	for _, m := range found {
		if item := c.metadata.of(m); o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy {
			into.Items = append(into.Items, *item)
		} else {
			into.Items = append(into.Items, *item.DeepCopy())
		}
	}
	return nil
}

// IndexField adds an index.
func (c *Cache) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	if c.isMetadata(obj) {
		return c.metadata.addIndex(field, extract)
	}
	return c.Cache.IndexField(ctx, obj, field, extract)
}

// GetInformer returns what tells of changes.
func (c *Cache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if c.isMetadata(obj) {
		return &informer{c}, nil
	}
	return c.Cache.GetInformer(ctx, obj, opts...)
}

// informer tells of the metadata of Sandboxes.
type informer struct{ cache *Cache }

// registration is a handler that was added.
type registration struct {
	*informer
	removed atomic.Bool
}

func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	r := &registration{informer: i}
	i.cache.HandleSandboxes(func(old, now *Member) {
		switch d := i.cache.metadata; {
		case r.removed.Load():
		case old == nil:
			h.OnAdd(d.of(now), !i.HasSynced())
		case now == nil:
			h.OnDelete(d.of(old))
		default:
			h.OnUpdate(d.of(old), d.of(now))
		}
	})
	return r, nil
}

func (i *informer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

func (i *informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

func (i *informer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	if r, ok := handle.(*registration); ok {
		r.removed.Store(true)
	}
	return nil
}

func (i *informer) AddIndexers(toolscache.Indexers) error {
	return errors.New("the metadata of sandboxes is indexed by fields only")
}

func (i *informer) HasSynced() bool {
	select {
	case <-i.cache.synced:
		return true
	default:
		return false
	}
}

func (i *informer) HasSyncedChecker() toolscache.DoneChecker { return synced{i.cache.synced} }

func (i *informer) IsStopped() bool { return false }

// synced is when everything was listed once.
type synced struct{ done <-chan struct{} }

func (s synced) Name() string          { return "sandboxes and their pods" }
func (s synced) Done() <-chan struct{} { return s.done }
