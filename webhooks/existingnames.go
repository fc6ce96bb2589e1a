package webhooks

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/bounded"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

// existingBytes bounds how many names are remembered, some 300 bytes each.
const existingBytes = 1 << 20

// ExistingNames remembers under which names a sandbox was lately let be created for a
// claim. A controller whose cache does not show that sandbox yet creates it again at
// once: agent-sandbox v0.5.6, with Sandboxes seen 1.5 s late, six or seven times a claim. The API
// server says that it exists only after all webhooks, and each kind makes a round of
// reads. So the first one says it, after one live read. What is remembered is a
// hint where to look, and nothing is let through for it. A nil *ExistingNames remembers
// nothing.
type ExistingNames struct {
	get   GetStored
	names *bounded.Cache[types.NamespacedName, struct{}]
}

// GetStored reads an object as it is stored now; nil when it does not exist. An error says
// that it could not be read.
type GetStored func(ctx context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error)

// NewExistingNames returns one without names.
func NewExistingNames(get GetStored) *ExistingNames {
	return &ExistingNames{get, bounded.NewCache[types.NamespacedName, struct{}](existingBytes)}
}

// note takes note of a write that passes. Whether it is stored in the end is not
// known here. What the API server names is never created twice.
func (e *ExistingNames) note(w platform.Write) {
	if e == nil || w.Operation != freshness.ColdStart || w.New.GetGenerateName() != "" {
		return
	}
	key := types.NamespacedName{Namespace: w.New.GetNamespace(), Name: w.New.GetName()}
	e.names.Add(key, struct{}{}, len(key.Namespace)+len(key.Name))
}

// has reports whether a sandbox of that name was let be created, and is there now. One
// that cannot be read is not said to be there: a verdict follows, as for any other.
func (e *ExistingNames) has(ctx context.Context, gr schema.GroupResource, key types.NamespacedName) bool {
	if e == nil {
		return false
	}
	if _, known := e.names.Get(key); !known {
		return false
	}
	obj, err := e.get(ctx, gr, key.Namespace, key.Name)
	if err == nil && obj == nil {
		e.names.Remove(key)
	}
	return err == nil && obj != nil
}
