package liveread

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref names one object. Namespace is empty for objects of the cluster.
type Ref struct {
	GVR             schema.GroupVersionResource
	Namespace, Name string
}

// String is for people: sandboxes.v1beta1.agents.x-k8s.io prod/python-7xk2p.
func (r Ref) String() string {
	resource := r.GVR.Resource
	if r.GVR.Version != "" {
		resource += "." + r.GVR.Version
	}
	if r.GVR.Group != "" {
		resource += "." + r.GVR.Group
	}
	if r.Namespace == "" {
		return resource + " " + r.Name
	}
	return resource + " " + r.Namespace + "/" + r.Name
}

// Getter does one linearizable GET: the object as stored at some time between call and return. It returns soon after ctx is done, and the
// API server's error as the client gives it.
type Getter interface {
	Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error)
}
