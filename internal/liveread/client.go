package liveread

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// dynamicGetter asks an API server.
type dynamicGetter struct{ client dynamic.Interface }

// NewDynamicGetter returns a Getter on the API server of cfg. It has no
// client-side rate limit: a read that an admission call waits for must not
// queue behind others.
func NewDynamicGetter(cfg *rest.Config) (Getter, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	if cfg.UserAgent == "" {
		cfg.UserAgent = "freshbind"
	}
	cfg.UserAgent += " (live reads)"
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client for live reads: %w", err)
	}
	return &dynamicGetter{client}, nil
}

// Get leaves the resourceVersion unset, which makes the read linearizable.
func (g *dynamicGetter) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	return g.client.Resource(ref.GVR).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
}

// Resolver finds the served version of a resource.
type Resolver struct {
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	versions []string

	mu       sync.Mutex
	known    map[schema.GroupResource]schema.GroupVersionResource
	lastTime time.Time
}

// refreshEvery bounds how often discovery is asked again.
const refreshEvery = time.Second

// NewResolver returns a Resolver by the discovery of cfg's API server. Of
// several versions the first one in versions is taken, else the server's
// preferred one.
func NewResolver(cfg *rest.Config, versions ...string) (*Resolver, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client for discovery: %w", err)
	}
	return &Resolver{
		mapper:   restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)),
		versions: versions,
		known:    map[schema.GroupResource]schema.GroupVersionResource{},
	}, nil
}

// Resource returns the served version of gr. The error says that it is not
// served, or that discovery did not answer; neither says anything about objects.
func (r *Resolver) Resource(_ context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	r.mu.Lock()
	gvr, ok := r.known[gr]
	r.mu.Unlock()
	if ok {
		return gvr, nil
	}
	served, err := r.mapper.ResourcesFor(gr.WithVersion(""))
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("asking discovery for %s: %w", gr, err)
	}
	gvr = served[0]
	for _, version := range r.versions {
		if i := slices.IndexFunc(served, func(s schema.GroupVersionResource) bool { return s.Version == version }); i >= 0 {
			gvr = served[i]
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[gr] = gvr
	return gvr, nil
}

// Refresh forgets what discovery said of a resource that turned out not to be
// served.
func (r *Resolver) Refresh(gvr schema.GroupVersionResource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, gvr.GroupResource())
	if now := time.Now(); now.Sub(r.lastTime) >= refreshEvery {
		r.lastTime = now
		r.mapper.Reset()
	}
}
