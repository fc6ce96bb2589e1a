package platform

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/revision"
)

// Reader reads one object as it is stored now.
type Reader interface {
	Get(ctx context.Context, ref liveread.Ref) (*unstructured.Unstructured, error)
}

// Resolver finds the served version of a resource.
type Resolver interface {
	Resource(ctx context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error)
}

// Stored reads objects as they are stored now.
type Stored struct {
	Reader   Reader
	Resolver Resolver
}

// Get returns an object; nil when it does not exist. Any other outcome is an error: it
// could not be read.
func (s Stored) Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error) {
	gvr, err := s.Resolver.Resource(ctx, gr)
	if err != nil {
		return nil, fmt.Errorf("finding the served version of %s: %w", gr, err)
	}
	obj, err := s.Reader.Get(ctx, liveread.Ref{GVR: gvr, Namespace: namespace, Name: name})
	if liveread.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", gr.Resource, namespace, name, err)
	}
	return obj, nil
}

// NamespaceLabels reads the labels of a namespace; none when it does not exist.
func (s Stored) NamespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	obj, err := s.Get(ctx, schema.GroupResource{Resource: "namespaces"}, "", name)
	if obj == nil {
		return nil, err
	}
	return obj.GetLabels(), nil
}

// History has the revisions that a template has had, as templates, the newest
// first. It names what is stale; no verdict needs it.
type History interface {
	Revisions(ctx context.Context, template *unstructured.Unstructured) ([]Recorded, error)
}

// Recorded is one revision of a template.
type Recorded struct {
	Hash string
	// Template has the revision's spec; nil when only digests were kept.
	Template *unstructured.Unstructured
	// Rendered is what a member of this revision is built from.
	Rendered revision.Blueprint
}
