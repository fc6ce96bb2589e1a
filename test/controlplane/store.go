package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	// etcd's gateway for JSON takes bytes in base64 (etcd, api/etcdserverpb/rpc.proto).
	body, err := json.Marshal(map[string][]byte{
		"key": []byte(path.Join(storedUnder, resource.Group, resource.Resource, obj.GetNamespace(), obj.GetName())), "value": value,
	})
	if err != nil {
		return fmt.Errorf("encode %s %s: %w", resource, obj.GetName(), err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.etcdURL()+"/v3/kv/put", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("store %s %s: %w", resource, obj.GetName(), err)
	}
	response, err := c.etcdClient.Do(request)
	if err != nil {
		return fmt.Errorf("store %s %s: %w", resource, obj.GetName(), err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	if err != nil {
		return fmt.Errorf("store %s %s: %w", resource, obj.GetName(), err)
	}
	return nil
}

// newEtcdClient keeps connections for many writes at once.
func newEtcdClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
}
