package members

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/freshbind/freshbind/internal/platform"
)

var (
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	podResource = corev1.SchemeGroupVersion.WithResource("pods")
)

// Cache is a cache whose Sandboxes, read by their metadata, come from a Store:
// with their owners, and with those labels and annotations that the platform and
// Freshbind write. Everything else it caches as usual.
type Cache struct {
	cache.Cache
	*Store

	metadata *metadata
	client   dynamic.Interface
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
	// podsOf selects the Pods of Sandboxes.
	podsOf string

	sandboxes []*Feed[Member]
	pods      []*Feed[Pod]

	started atomic.Bool
	// synced is closed when everything was listed once.
	synced  chan struct{}
	waiting atomic.Int32
}

// Source says what a Cache looks at.
type Source struct {
	Reducer *platform.Reducer
	// Kind and Resource are those of Sandboxes, in the version that is served.
	Kind     schema.GroupVersionKind
	Resource string
	// Pods is a label that all Pods of Sandboxes have.
	Pods string
}

// NewCache returns a Cache on another one. It looks at these namespaces only, at
// all when there are none.
func NewCache(base cache.Cache, cfg *rest.Config, of Source, namespaces map[string]cache.Config) (*Cache, error) {
	cfg = rest.CopyConfig(cfg)
	// A list that is read page by page must not wait between its pages.
	cfg.QPS = -1
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating the client of the cache of members: %w", err)
	}
	store := NewStore(of.Reducer)
	c := &Cache{
		Cache: base, Store: store, metadata: newMetadata(store, of.Kind), client: client, kind: of.Kind,
		resource: of.Kind.GroupVersion().WithResource(of.Resource), podsOf: of.Pods, synced: make(chan struct{}),
	}
	names := []string{""}
	if len(namespaces) > 0 {
		names = nil
		for namespace := range namespaces {
			names = append(names, namespace)
		}
		slices.Sort(names)
	}
	c.waiting.Store(int32(2 * len(names)))
	for _, namespace := range names {
		c.sandboxes = append(c.sandboxes, store.FeedSandboxes(namespace, c.listed))
		c.pods = append(c.pods, store.FeedPods(namespace, c.listed))
	}
	return c, nil
}

func (c *Cache) listed() {
	if c.waiting.Add(-1) == 0 {
		close(c.synced)
	}
}

// Start fills both caches until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	c.started.Store(true)
	var wg sync.WaitGroup
	for _, r := range c.sandboxes {
		wg.Go(func() { r.run(ctx, c.client.Resource(c.resource), c.kind, "") })
	}
	for _, r := range c.pods {
		wg.Go(func() { r.run(ctx, c.client.Resource(podResource), podKind, c.podsOf) })
	}
	err := c.Cache.Start(ctx)
	wg.Wait()
	return err
}

// WaitForCacheSync reports whether everything was listed before ctx ended.
func (c *Cache) WaitForCacheSync(ctx context.Context) bool {
	return c.Cache.WaitForCacheSync(ctx) && c.WaitForSync(ctx) == nil
}

// WaitForSync waits until the Store shows everything that there is.
func (c *Cache) WaitForSync(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("listing sandboxes and their pods: %w", ctx.Err())
	}
}

// readable waits for what a reader must not miss.
func (c *Cache) readable(ctx context.Context) error {
	if !c.started.Load() {
		return &cache.ErrCacheNotStarted{}
	}
	return c.WaitForSync(ctx)
}
