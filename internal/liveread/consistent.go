package liveread

import (
	"net/http"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// NewConsistentCache is a cache.NewCacheFunc. The first list of each informer
// asks etcd, not the memory of an API server: where client-go cannot stream the
// initial events it falls back to a list of any version (client-go,
// tools/cache/reflector.go), and a controller that starts on an older view does
// again what was done already (kubernetes#59848).
func NewConsistentCache(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(consistent)
	// It would be used in place of what cfg says.
	o.HTTPClient = nil
	return cache.New(cfg, o)
}

func consistent(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		q := r.URL.Query()
		if r.Method == http.MethodGet && q.Get("resourceVersion") == "0" && q.Get("watch") == "" {
			r = r.Clone(r.Context())
			q.Del("resourceVersion")
			q.Del("resourceVersionMatch")
			r.URL.RawQuery = q.Encode()
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
