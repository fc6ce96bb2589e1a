package platform

import (
	"context"

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
