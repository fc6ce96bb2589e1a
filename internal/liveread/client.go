package liveread

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// dynamicGetter asks an API server.
type dynamicGetter struct{ client dynamic.Interface }

// unlimited is cfg without a client-side rate limit: a read that an admission call
// waits for must not queue behind others.
func unlimited(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	return cfg
}

// NewDynamicGetter returns a Getter on the API server of cfg.
func NewDynamicGetter(cfg *rest.Config) (Getter, error) {
	cfg = unlimited(cfg)
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
