package liveread

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/jsonobject"
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

// NewDynamicGetter returns a Getter on the API server of cfg. Its objects have no managed
// fields.
func NewDynamicGetter(cfg *rest.Config) (Getter, error) {
	cfg = unlimited(cfg)
	if cfg.UserAgent == "" {
		cfg.UserAgent = "freshbind"
	}
	cfg.UserAgent += " (live reads)"
	cfg = dynamic.ConfigFor(cfg)
	cfg.NegotiatedSerializer = onePass{cfg.NegotiatedSerializer}
	client, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client for live reads: %w", err)
	}
	return &dynamicGetter{dynamic.New(client)}, nil
}

// Get leaves the resourceVersion unset, which makes the read linearizable.
func (g *dynamicGetter) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	return g.client.Resource(ref.GVR).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
}

// onePass decodes an object in one pass, and leaves every other answer to the serializer of
// the client.
type onePass struct{ runtime.NegotiatedSerializer }

// DecoderToVersion returns what decodes answers.
func (s onePass) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return onePassDecoder{s.NegotiatedSerializer.DecoderToVersion(d, gv)}
}

type onePassDecoder struct{ runtime.Decoder }

// Decode decodes an answer.
func (d onePassDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if u, ok := into.(*unstructured.Unstructured); ok {
		if object, ok := jsonobject.Read(data); ok && hasType(object) {
			u.Object = object
			gvk := u.GroupVersionKind()
			return u, &gvk, nil
		}
	}
	return d.Decoder.Decode(data, defaults, into)
}

// hasType: what has none is an error, which the serializer has words for.
func hasType(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	_, versioned := object["apiVersion"].(string)
	return kind != "" && versioned
}
