package liveread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
)

// Resolver finds the served version of a resource. Nobody who asks for what is
// known waits for discovery, however slow that is.
type Resolver struct {
	discovery discovery.DiscoveryInterface
	versions  []string
	clock     clock.PassiveClock

	// asking shares one discovery between all who wait for it.
	asking singleflight.Group

	// mu is never held while the API server is asked.
	mu    sync.Mutex
	known map[schema.GroupResource]schema.GroupVersionResource
	// served is what discovery said last; nil before.
	served meta.RESTMapper
	// asked is when discovery was last begun.
	asked time.Time
}

// ErrNotServed says that discovery answered, and does not know the resource.
var ErrNotServed = errors.New("no version of it is served")

// refreshEvery bounds how often discovery is asked again.
const refreshEvery = time.Second

// NewResolver returns a Resolver by the discovery of cfg's API server. Of
// several versions the first one in versions is taken, else the server's
// preferred one.
func NewResolver(cfg *rest.Config, versions ...string) (*Resolver, error) {
	client, err := discovery.NewDiscoveryClientForConfig(unlimited(cfg))
	if err != nil {
		return nil, fmt.Errorf("creating client for discovery: %w", err)
	}
	return &Resolver{
		discovery: client, versions: versions, clock: clock.RealClock{},
		known: map[schema.GroupResource]schema.GroupVersionResource{},
	}, nil
}

// Resource returns the served version of gr. The error says that it is not
// served, or that discovery did not answer; neither says anything about objects.
func (r *Resolver) Resource(ctx context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	if gvr, known := r.lookUp(gr); known {
		return gvr, nil
	}
	if err := r.await(ctx); err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("asking discovery for %s: %w", gr, err)
	}
	gvr, known := r.lookUp(gr)
	if !known {
		return schema.GroupVersionResource{}, fmt.Errorf("asking discovery for %s: %w", gr, ErrNotServed)
	}
	return gvr, nil
}

// lookUp answers from what is known.
func (r *Resolver) lookUp(gr schema.GroupResource) (schema.GroupVersionResource, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if gvr, known := r.known[gr]; known {
		return gvr, true
	}
	gvr, served := r.choose(r.served, gr)
	if served {
		r.known[gr] = gvr
	}
	return gvr, served
}

func (r *Resolver) choose(mapper meta.RESTMapper, gr schema.GroupResource) (schema.GroupVersionResource, bool) {
	if mapper == nil {
		return schema.GroupVersionResource{}, false
	}
	// Its error says nothing but that there are none.
	served, _ := mapper.ResourcesFor(gr.WithVersion(""))
	if len(served) == 0 {
		return schema.GroupVersionResource{}, false
	}
	for _, version := range r.versions {
		if i := slices.IndexFunc(served, func(s schema.GroupVersionResource) bool { return s.Version == version }); i >= 0 {
			return served[i], true
		}
	}
	return served[0], true
}

// await waits for discovery, unless that answered just now.
func (r *Resolver) await(ctx context.Context) error {
	r.mu.Lock()
	recent := r.served != nil && r.clock.Since(r.asked) < refreshEvery
	r.mu.Unlock()
	if recent {
		return nil
	}
	select {
	case result := <-r.asking.DoChan("", r.discover):
		return result.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Refresh has discovery asked again because of a resource that turned out not to
// be served. It does not wait: until discovery answers, what was known stays.
func (r *Resolver) Refresh(schema.GroupVersionResource) {
	r.mu.Lock()
	recent := r.clock.Since(r.asked) < refreshEvery
	r.mu.Unlock()
	if !recent {
		r.asking.DoChan("", r.discover)
	}
}

func (r *Resolver) discover() (any, error) {
	r.mu.Lock()
	r.asked = r.clock.Now()
	r.mu.Unlock()
	groups, err := restmapper.GetAPIGroupResources(r.discovery)
	if err != nil {
		return nil, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.served = mapper
	for gr := range r.known {
		// A group whose discovery failed is left out, too: what is not among
		// the answers may be served all the same.
		if gvr, served := r.choose(mapper, gr); served {
			r.known[gr] = gvr
		}
	}
	return nil, nil
}
