package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// storedUnder is kube-apiserver's --etcd-prefix.
const storedUnder = "/registry"

// Store writes an object into etcd as it is, past the API servers, which see it
// in their watch: no admission, no validation, and a tenth of the time. It is for
// those who need more objects than they have time to create. The object is one
// that was stored before, but for what makes it another: names and UIDs.
func (c *Cluster) Store(ctx context.Context, resource schema.GroupResource, obj *unstructured.Unstructured) error {
	object := obj.DeepCopy()
	// It is the revision of the key in etcd, and never stored.
	object.SetResourceVersion("")
	value, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode %s %s: %w", resource, obj.GetName(), err)
	}
	key := path.Join(storedUnder, resource.Group, resource.Resource, obj.GetNamespace(), obj.GetName())
	if _, err := c.askEtcd(ctx, "put", map[string][]byte{"key": []byte(key), "value": value}); err != nil {
		return fmt.Errorf("store %s %s: %w", resource, obj.GetName(), err)
	}
	return nil
}

// newEtcdClient keeps connections for many writes at once.
func newEtcdClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
}
